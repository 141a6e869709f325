"""A processor with state of each kind in Python, which Spark has from 4.0 on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

_NEVER_MS = 10_000 * 24 * 3_600_000


class Memory(StatefulProcessor):
    """Keeps a value, a list and a map for each key.

    With `expires`, lists expire in the next micro-batch and values and maps never, and of two timers in
    processing time one ends in the next micro-batch. Without, there are timers in event time.
    """

    def __init__(self, expires: bool) -> None:
        self._expires = expires

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        soon, never = (1, _NEVER_MS) if self._expires else (None, None)
        self._sum = handle.getValueState("sum", "total long", never)
        self._all = handle.getListState("all", "value long", soon)
        self._digits = handle.getMapState("digits", "digit string", "n long", never)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        total = self._total() if self._sum.exists() else 0
        for value in (int(value) for piece in rows for value in piece["value"]):
            total += value
            self._all.appendValue((value,))
            digit = (f"digit {value % 10}",)
            seen: Any = self._digits.getValue(digit) if self._digits.containsKey(digit) else (0,)
            self._digits.updateValue(digit, (seen[0] + 1,))
        self._sum.update((total,))
        if self._expires:
            now = timerValues.getCurrentProcessingTimeInMs()
            self._handle.registerTimer(now + 1)
            self._handle.registerTimer(now + _NEVER_MS)
        else:
            now = timerValues.getCurrentWatermarkInMs()
            self._handle.registerTimer(now + 30_000)
            self._handle.registerTimer(now + 75_000)
        yield self._known(key, "rows")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield self._known(key, "timer")

    def close(self) -> None:
        pass

    def _total(self) -> int:
        value: Any = self._sum.get()
        return int(value[0])

    def _known(self, key: Any, why: str) -> pd.DataFrame:
        # In the list's order, which is that of the rows.
        every = [value for (value,) in self._all.get()]
        digits = sorted((digit, n) for (digit,), (n,) in self._digits.iterator())
        return pd.DataFrame({"key": [key[0]], "why": [why], "known": [f"{self._total()} {every} {digits}"]})
