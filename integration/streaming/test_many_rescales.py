"""Tests that hundreds of rescales of a query leave nothing behind in its driver."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import reduce
from operator import and_
from pathlib import Path

import pytest
from attrs import frozen
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from integration.streaming.world import World, own_world

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

SHIM = "org.apache.spark.sql.elastic"
FEW = 8

WARM = 50
MANY = 550
# Spark keeps about 11 kB per rescale: loggers of stores by name, and the last uploads of stores.
THREADS, FILES, HEAP = 5, 10, 8 << 20
# Spark's maintenance closes old stores once a minute; a store has ten files and threads.
STORES = 6
OF_A_STORE = ("/StateStoreId", "ChecksumCheckpointFileManager")
MOST = 8
# Spark keeps up to a thousand of each for its UI; with fewer, nothing grows during the measurement.
KEEP_FEW = {
    f"spark.{kind}": "20"
    for kind in ("ui.retainedJobs", "ui.retainedStages", "ui.retainedTasks", "sql.ui.retainedExecutions")
}


@frozen
class Held:
    """A driver's resources: threads and files by name, without those of stores, and bytes by class."""

    threads: Counter[str]
    files: Counter[str]
    stores: int
    listeners: int
    heap: Counter[str]

    def more_than(self, other: Held) -> list[str]:
        """Return which resources exceed the limits, and which have grown most."""
        said = []
        if self.threads.total() > other.threads.total() + THREADS:
            said.append(f"threads: {(self.threads - other.threads).most_common(MOST)}")
        if self.files.total() > other.files.total() + FILES:
            said.append(f"files: {(self.files - other.files).most_common(MOST)}")
        if self.stores > other.stores + STORES:
            said.append(f"{self.stores} stores instead of {other.stores}")
        if self.listeners != other.listeners:
            said.append(f"{self.listeners} listeners instead of {other.listeners}")
        if self.heap.total() > other.heap.total() + HEAP:
            said.append(f"bytes: {(self.heap - other.heap).most_common(MOST)}")
        return said


def names(found: Iterable[str]) -> Counter[str]:
    """Count names, except those of stores, without the parts that vary: numbers and UUIDs."""
    others = (name for name in found if not any(of_a_store in name for of_a_store in OF_A_STORE))
    return Counter(re.sub(r"[0-9a-f-]*\d[0-9a-f-]*", "#", name) for name in others)


def open_files(pid: int) -> Iterator[str]:
    """Return the target of each file descriptor of a process; one that is closed meanwhile is left out."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(descriptor.readlink())


def held(world: World, query: StreamingQuery) -> Held:
    """Measure during a few more rescales and return the minimum of each: temporary resources come and go."""
    bus = world.spark._jsparkSession.sparkContext().listenerBus()
    looks: list[Held] = []
    until = world.policy.rescales(query.id) + FEW

    def look() -> bool:
        files = list(open_files(world.driver.pid))
        seen = Held(
            threads=names(world.driver.threads()),
            files=names(files),
            stores=sum(OF_A_STORE[0] in file and file.endswith("/LOCK") for file in files),
            listeners=int(bus.listeners().size()) + len(world.spark._jsparkSession.streams().listListeners()),
            heap=world.driver.living_by_class(),
        )
        looks.append(seen)
        return world.policy.rescales(query.id) >= until

    eventually(look, "some more rescales", timeout_s=120.0, every_s=0.1)
    return Held(
        threads=reduce(and_, (seen.threads for seen in looks)),
        files=reduce(and_, (seen.files for seen in looks)),
        stores=min(seen.stores for seen in looks),
        listeners=looks[-1].listeners,
        heap=reduce(and_, (seen.heap for seen in looks)),
    )


def rescaled(world: World, prepared: bool = False) -> StreamingQuery:
    """Start a query with a state of a few keys that is rescaled after each micro-batch."""
    rows = world.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
    counts = rows.groupBy((F.col("value") % 10).alias("key")).count()
    world.policy.order(every=1, prepared=prepared)
    return counts.writeStream.format("noop").outputMode("update").start()


def test_no_batch_before_a_rescale_is_kept(jvm: Driver, tmp_path: Path) -> None:
    with own_world(jvm, tmp_path) as world:
        query = rescaled(world)
        eventually(lambda: world.policy.rescales(query.id) >= FEW, "some rescales")
        # Between two rescales the latest one is left; while one is made, up to two before it are as well.
        eventually(lambda: world.driver.living(f"{SHIM}.ResumedBatch") <= 2, "none of before is kept")
        assert query.isActive
        query.stop()


@pytest.mark.slow
@pytest.mark.parametrize("prepared", [False, True])
def test_five_hundred_rescales_leave_the_driver_as_it_was(
    jvm: Driver, tmp_path: Path, prepared: bool
) -> None:
    with own_world(jvm, tmp_path, **KEEP_FEW) as world:
        query = rescaled(world, prepared)
        patience = {"timeout_s": 1500.0, "every_s": 0.5}
        eventually(lambda: world.policy.rescales(query.id) >= WARM, "it is warm", **patience)
        before = held(world, query)
        eventually(lambda: world.policy.rescales(query.id) >= MANY, "many rescales", **patience)
        after = held(world, query)
        assert query.isActive
        query.stop()
    more = after.more_than(before)
    assert not more, "\n".join(more)
