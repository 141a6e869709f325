"""The gateway to a real driver, over Py4J on loopback."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from spark_elastic import __version__
from spark_elastic.gateway.connection import connect
from spark_elastic.gateway.handshake import Handshake
from spark_elastic.gateway.port import (
    CONTRACT,
    Exchange,
    JsonObject,
    Lost,
    Mismatch,
    QueueName,
    Served,
    Unanswered,
)


class Py4JGateway:
    """A connection to the driver that wrote `handshake`: the one for events and actions, or for `requests`.

    Raises Lost if nobody listens or answers, Mismatch if the listener cannot prove that it knows our token or
    is of another version.
    """

    def __init__(self, handshake: Handshake, *, requests: bool = False) -> None:
        self._where = handshake.where
        if handshake.version != __version__:
            raise Mismatch(_versions_differ(handshake.version))
        self._gateway = connect(handshake)
        try:
            self._hello(requests)
        except Unanswered as error:
            self.close()
            raise Lost(str(error)) from error
        except BaseException:
            self.close()
            raise

    def exchange(self, actions: Sequence[JsonObject], wait_ms: int) -> Exchange:
        """Hand over `actions`, wait up to `wait_ms` for events. Raises Lost."""
        try:
            reply = self._call("exchange", {"actions": list(actions), "wait_ms": wait_ms})
        except Unanswered as error:
            raise Lost(str(error)) from error  # the events of that answer are
        try:
            return Exchange(
                events=tuple(reply["events"]),
                merged=int(reply.get("merged", 0)),
                dropped=int(reply.get("dropped", 0)),
                stop=bool(reply.get("stop", False)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Lost(
                f"the driver at {self._where} answered something else than events: {error!r}"
            ) from error

    def serve(
        self,
        answer: JsonObject | None,
        *,
        queue: QueueName,
        wait_ms: int,
        metrics: Mapping[str, float] | None = None,
    ) -> Served:
        """Hand over the answer to a request, wait up to `wait_ms` for the next one of a queue.

        Threads may call this at the same time. Raises Lost; Unanswered if the next call may go better.
        """
        request: dict[str, Any] = {"answer": answer, "queue": queue, "wait_ms": wait_ms}
        if metrics is not None:
            request["metrics"] = metrics
        reply = self._call("serve", request)
        return Served(request=reply.get("request"), stop=bool(reply.get("stop", False)))

    def wake(self) -> None:
        """Let an exchange that waits for events come back now. Raises Lost."""
        try:
            self._gateway.entry_point.wake()
        except (Py4JError, OSError) as error:
            raise Lost(f"no connection to the driver at {self._where} for 'wake'") from error

    def close(self) -> None:
        """End the connection; a second time does nothing."""
        # There is no callback server; saying so keeps Py4J from a deprecation note.
        self._gateway.close(keep_callback_server=True)

    def _hello(self, requests: bool) -> None:
        reply = self._call("hello", {"version": __version__, "contract": CONTRACT, "requests": requests})
        if reply.get("version") != __version__:
            raise Mismatch(_versions_differ(str(reply.get("version"))))
        if reply.get("contract") != CONTRACT:
            raise Mismatch(
                f"jar and Python package are version {__version__}, but the jar speaks contract "
                f"{reply.get('contract')} and the package contract {CONTRACT}, so they were built from "
                "different sources: type `make jar` in the checkout, or install spark-elastic again"
            )

    def _call(self, method: str, request: dict[str, Any]) -> dict[str, Any]:
        """Call `method` of the entry point: a JSON object in, a JSON object out. Raises Lost, Unanswered."""
        try:
            written = json.dumps(request)
        except (TypeError, ValueError, RecursionError) as error:
            raise Unanswered(f"what '{method}' is to carry is no JSON: {error}") from error
        try:
            text = getattr(self._gateway.entry_point, method)(written)
            reply = json.loads(text)
        except Py4JJavaError as error:
            # The driver logs its own reason; asking for it here would be one more call that may fail.
            raise Unanswered(f"the driver at {self._where} could not answer '{method}'") from error
        except (Py4JError, OSError) as error:
            raise Lost(f"no connection to the driver at {self._where} for '{method}'") from error
        except (TypeError, ValueError) as error:
            raise Lost(f"the driver at {self._where} answered '{method}' with no JSON") from error
        if not isinstance(reply, dict):
            raise Lost(f"the driver at {self._where} answered '{method}' with no JSON object")
        return reply


def _versions_differ(theirs: str) -> str:
    return (
        f"the jar is version {theirs}, this Python package is version {__version__}: "
        f"type `pip install spark-elastic=={theirs}` for the Python of spark.elastic.python, or take the jar "
        f"of version {__version__}"
    )
