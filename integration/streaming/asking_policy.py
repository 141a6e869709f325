"""The real policy, which also accepts requests from a test: it reads events from files in a folder.

The plugin runs it in place of ``python -m spark_elastic.runtime``; its only argument is the folder. Each file
``*.json`` in it has one event without id and time, and is removed after it was read.
"""

from __future__ import annotations

import itertools
import json
import runpy
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from spark_elastic.gateway.client import Py4JGateway
from spark_elastic.runtime.port import Exchange, JsonObject

_FOLDER = Path(sys.argv[1])
_NUMBERS = itertools.count(1)
_exchange = Py4JGateway.exchange


def _asked() -> list[JsonObject]:
    events: list[JsonObject] = []
    for file in sorted(_FOLDER.glob("*.json")):
        now = time.time_ns() // 1_000_000
        events.append({"id": f"q{next(_NUMBERS)}", "at": now, **json.loads(file.read_text())})
        file.unlink()
    return events


def _exchange_and_ask(self: Py4JGateway, actions: Sequence[JsonObject], wait_ms: int) -> Exchange:
    reply = _exchange(self, actions, min(wait_ms, 50))
    return evolve(reply, events=(*reply.events, *_asked()))


Py4JGateway.exchange = _exchange_and_ask  # type: ignore[method-assign]
runpy.run_module("spark_elastic.runtime", run_name="__main__")
