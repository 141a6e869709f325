"""The real policy, but it answers questions about batch stages late or with nonsense, or records them.

The plugin runs it in place of ``python -m spark_elastic.runtime``. Its argument is the duration of an answer
in seconds, ``nonsense``, or a file that gets a line for each request: the number of its questions, and their
kinds.
"""

from __future__ import annotations

import runpy
import sys
import time

from spark_elastic.gateway.stages import Stages
from spark_elastic.runtime.port import JsonObject

_HOW = sys.argv[1]
_answer = Stages.answer


def _late(self: Stages, request: JsonObject) -> JsonObject:
    time.sleep(float(_HOW))
    return _answer(self, request)


def _nonsense(self: Stages, request: JsonObject) -> JsonObject:
    specs = [{"start": 0, "end": 1}, {"start": 2, "end": 4}]
    nonsense = {"partitions": 0, "specs": specs}
    return {"id": request["id"], "answers": [nonsense] * len(request["questions"])}


def _noted(self: Stages, request: JsonObject) -> JsonObject:
    kinds = {question["type"] for question in request["questions"]}
    with open(_HOW, "a", encoding="utf-8") as file:
        file.write(f"{len(request['questions'])} {' '.join(sorted(kinds))}\n")
    return _answer(self, request)


if "/" in _HOW:
    Stages.answer = _noted  # type: ignore[method-assign]
else:
    Stages.answer = _nonsense if _HOW == "nonsense" else _late  # type: ignore[method-assign]
runpy.run_module("spark_elastic.runtime", run_name="__main__")
