"""The real policy, which answers questions about batch stages late, or with nonsense.

Run by the plugin in place of ``python -m spark_elastic.runtime``. Its argument is how many seconds an answer
takes, or ``nonsense``.
"""

from __future__ import annotations

import runpy
import sys
import time

from spark_elastic.gateway.port import JsonObject
from spark_elastic.runtime.stages import Stages

_HOW = sys.argv[1]
_answer = Stages.answer


def _late(self: Stages, request: JsonObject) -> JsonObject:
    time.sleep(float(_HOW))
    return _answer(self, request)


def _nonsense(self: Stages, request: JsonObject) -> JsonObject:
    specs = [{"start": 0, "end": 1}, {"start": 2, "end": 4}]
    return {"id": request["id"], "answer": {"partitions": 0, "specs": specs}}


Stages.answer = _nonsense if _HOW == "nonsense" else _late  # type: ignore[method-assign]
runpy.run_module("spark_elastic.runtime", run_name="__main__")
