"""A sink whose micro-batches wait until a test decides how they end."""

from __future__ import annotations

from queue import SimpleQueue

from pyspark.sql import DataFrame

from integration.streaming.waiting import PATIENCE_S


class Held:
    """A sink whose micro-batches wait until `commit` or `fail` is called."""

    def __init__(self) -> None:
        self.begun = 0
        self.totals: dict[int, tuple[int, int]] = {}
        self._ends: SimpleQueue[bool] = SimpleQueue()

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.begun += 1
        if not self._ends.get(timeout=PATIENCE_S):
            # A different error each time: three equal ones in a row would end the query.
            raise ValueError("the sink is " + "very " * self.begun + "ill")
        self.totals.update({row.key: (row.n, row.total) for row in batch.collect()})

    def commit(self) -> None:
        self._ends.put(True)

    def fail(self) -> None:
        self._ends.put(False)
