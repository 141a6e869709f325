"""Answer questions about batch stages in the thread that fetches them; none of them waits for the loop."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from spark_elastic.core.batch.decider import BatchDecider
from spark_elastic.core.keys.application import ADVISE_ONLY
from spark_elastic.runtime.port import JsonObject
from spark_elastic.runtime.publisher import Publisher
from spark_elastic.wire import WireError, decode_question, encode_answer

_log = logging.getLogger(__name__)

# None for one of these in an answer leaves it to Spark.
_ADVICE = ("partitions", "specs", "tasks")


class Stages:
    """Decides about batch stages with the settings and slots in `publisher`, and records each decision there.

    Errors here are logged and lead to an empty answer, and never end the policy.
    """

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._decider: BatchDecider | None = None

    def warm_up(self) -> None:
        """Decide made-up questions, because a first decision takes longer than planning would wait for it."""
        decider = BatchDecider()
        exchange = {"id": "e", "bytes": 1 << 30}
        scan = {"scan": "s", "bytes": 1 << 30, "planned": 8, "smallest": 4 << 20, "largest": 128 << 20}
        for _ in range(3):
            for question in (
                {"type": "InitialCount", "group": "e", "planned": 200, "exchanges": [exchange]},
                {"type": "Ranges", "group": "e", "exchanges": [{**exchange, "bytes": [1 << 24] * 64}]},
                {"type": "SplitSize", **scan},
            ):
                _decide(decider, {**question, "slots": 2})

    def answer(self, request: JsonObject) -> JsonObject:
        """Answer a request of the queue for stages, each of its questions separately."""
        questions = request.get("questions")
        if not isinstance(questions, list):
            _log.warning("a request about batch stages has no list of questions")
            questions = []
        answers = [self._answer_one(question, request) for question in questions]
        return {"id": request.get("id"), "answers": answers}

    def _answer_one(self, question: Any, request: JsonObject) -> JsonObject:
        try:
            return self._answer(question, request)
        except WireError as error:
            _log.warning("a question about a batch stage cannot be read: %s", error)
        except Exception:
            _log.exception("a question about a batch stage failed")
        return {}

    def _answer(self, given: Any, request: JsonObject) -> JsonObject:
        if not isinstance(given, dict):
            raise WireError("a question is no object")
        view = self._publisher.view
        if view is None:
            raise WireError("it came before the settings")
        if self._decider is None:
            self._decider = BatchDecider(settings=view.settings.batch())
        question = {**given, "slots": view.slots}
        began = time.perf_counter_ns()
        answer = _decide(self._decider, question)
        # The shim warms up with questions that name no group and no scan.
        if question.get("group") or question.get("scan"):
            took = (time.perf_counter_ns() - began) // 1_000
            asked = {key: request.get(key, 0) for key in ("unanswered", "last_us")}
            at = time.time_ns() // 1_000_000
            self._publisher.stages.add(
                {"at": at, "question": question, "answer": answer, "took_us": took, **asked}
            )
        if view.settings[ADVISE_ONLY]:
            return {**answer, **{key: None for key in _ADVICE if key in answer}}
        return answer


def _decide(decider: BatchDecider, question: Mapping[str, Any]) -> dict[str, Any]:
    return encode_answer(decider.answer(decode_question(question)))
