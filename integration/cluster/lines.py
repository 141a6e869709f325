"""A load that may change, and a query whose micro-batches take equally long on any machine."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import define, field
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.cluster.application import Application
from integration.cluster.queries import Places, Start
from integration.streaming.waiting import eventually
from spark_elastic_lab.simulator.load import Load

if TYPE_CHECKING:
    from typing_extensions import Self

# Long compared with an empty micro-batch on few cores.
TRIGGER_S = 4.0
ROW_MS = 5
# 4 s of work in a micro-batch, as long as its interval: with any headroom, that takes two slots.
ROWS_PER_S = 200
# The time for measuring the rate, the window, the idle timeout, and executors that start on few cores.
SETTLED_S = 240.0

ONE_SLOT_EACH = {
    "spark.executor.cores": "1",
    # By their bytes, all rows of a micro-batch would be one task.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}
"""Settings with which each executor is one more slot for the query."""


def autoscaled(most: int, window_s: int) -> dict[str, str]:
    """Return settings that let executors follow the load, up to this many, and down after a window."""
    return {
        **ONE_SLOT_EACH,
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.policy": "autoscale",
        "spark.elastic.autoscale.scaleDownWindow": f"{window_s}s",
        "spark.elastic.slotIdleTimeout": "2s",
        "spark.elastic.maxExecutors": str(most),
    }


@define
class Lines:
    """Writes files of rows into a folder, at a rate that may change; each row is a different number."""

    folder: Path
    rows_per_s: int = ROWS_PER_S
    written: int = 0
    _ending: threading.Event = field(factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=True)
        self._thread = threading.Thread(target=self._run, name="lines", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            self._write(self.rows_per_s)
            due = max(due + 1.0, time.monotonic())

    def _write(self, rows: int) -> None:
        numbers = range(self.written, self.written + rows)
        hidden = self.folder / f".{self.written}"
        hidden.write_text("".join(f"{number}\n" for number in numbers))
        hidden.rename(self.folder / f"{self.written}.txt")
        self.written = numbers.stop


# Rows are written in the middle of their second, so that their mean delay is that of single rows.
_IN_A_SECOND = 0.5


def written_by(second: float, load: Load) -> int:
    """Return the rows of a load that `LinesOfLoad` has written this many seconds after its start."""
    return int(load.arrived(math.floor(second + 1 - _IN_A_SECOND)))


@define(kw_only=True)
class LinesOfLoad(Lines):
    """Writes the rows of a load from a moment on (epoch s), until the load ends.

    The rows of each second are written in its middle, never early; a late file changes nothing about the
    later ones.
    """

    load: Load
    begin: float

    @property
    def over(self) -> bool:
        """Return whether all rows are written and the last second has passed."""
        return time.time() >= self.begin + len(self.load.rates)

    def _run(self) -> None:
        for second in range(len(self.load.rates)):
            if self._ending.wait(max(0.0, self.begin + second + _IN_A_SECOND - time.time())):
                return
            rows = written_by(second + _IN_A_SECOND, self.load) - self.written
            if rows:
                self._write(rows)


@pytest.fixture(scope="module")
def lines(app: Application) -> Iterator[Lines]:
    """Start a load for the application of a module."""
    with Lines(app.places.output.with_name("lines")) as writing:
        yield writing


def wait_for_executors(
    app: Application, least: int, most: int, keeps_up: Callable[[], bool] = lambda: True
) -> int:
    """Wait until there are this many executors of one slot, and they are enough; return their number."""

    def look() -> int:
        app.check_alive()
        here = app.story.slots.total
        return here if least <= here <= most and keeps_up() else 0

    return eventually(look, f"{least} to {most} executors that suffice", timeout_s=SETTLED_S, every_s=0.5)


def start_slow(
    lines: Lines, *, stateful: bool = False, by: str = "value", trigger_s: float = TRIGGER_S
) -> Start:
    """Return a function that starts a query which waits for each row, after a shuffle `by` an expression.

    A stateful one keeps each row.
    """

    def start(spark: SparkSession, places: Places, name: str) -> StreamingQuery:
        read = spark.readStream.text(str(lines.folder))
        rows = read.dropDuplicates(["value"]) if stateful else read.repartition(F.expr(by))
        waited = rows.selectExpr("value", f"reflect('java.lang.Thread', 'sleep', {ROW_MS}L) AS waited")
        return (
            waited.writeStream.queryName(name)
            .format("parquet")
            .option("path", str(places.output / name))
            .option("checkpointLocation", str(places.output / "checkpoints" / name))
            .trigger(processingTime=f"{trigger_s:g} seconds")
            .start()
        )

    return start
