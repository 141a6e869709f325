"""Tests of a `foreachBatch` whose own threads use the application's session, as a merge of Delta's does."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.world import feed_until_rescaled, own_world, totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

THREADS = 4
CHECKED = {"spark.sql.streaming.stateStore.commitValidation.enabled": "true"}


class Merge:
    """Joins each batch with a table of the application's; each thread does a share of the keys."""

    def __init__(self, spark: SparkSession, *, inherits: bool, cached: bool) -> None:
        self._spark = spark
        self._inherits = inherits
        self._cached = cached
        self._names = spark.createDataFrame([(key, f"name {key}") for key in range(7)], ["key", "name"])
        self.now: dict[int, tuple[int, int]] = {}
        self.names: dict[int, str] = {}

    def __call__(self, batch: DataFrame, number: int) -> None:
        source = self._in_the_applications_session(batch)
        if self._cached:
            source.persist()

        def share(n: int) -> list[Any]:
            return source.where(F.col("key") % THREADS == n).join(self._names, "key").collect()

        work: Callable[[int], list[Any]] = share
        if self._inherits:
            work = inheritable_thread_target(self._spark)(share)
        with ThreadPoolExecutor(THREADS) as pool:
            found = [row for rows in pool.map(work, range(THREADS)) for row in rows]
        source.unpersist()
        self.now.update({row.key: (row.n, row.total) for row in found})
        self.names.update({row.key: row.name for row in found})

    def _in_the_applications_session(self, batch: DataFrame) -> DataFrame:
        jvm: Any = self._spark._jvm
        plan = batch._jdf.queryExecution().analyzed()
        rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._spark._jsparkSession, plan)
        return DataFrame(rows, self._spark)


# A task reports the state it has written only if its job's local properties say format 2. The query's own
# session has that property, and the application's session does not.
@pytest.mark.parametrize(
    "cached", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["read", "cached"]
)
@pytest.mark.parametrize(
    "inherits", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["with its properties", "without"]
)
def test_it_goes_on_with_the_format_that_can_be_rescaled(
    jvm: Driver, inbox: Inbox, tmp_path: Path, inherits: bool, cached: bool
) -> None:
    checkpoint = tmp_path / "checkpoint"
    with own_world(jvm, tmp_path, **CHECKED) as world:
        merge = Merge(world.spark, inherits=inherits, cached=cached)
        world.policy.order(every=2)
        inbox.put(2)
        writer = totals(world.spark, inbox).writeStream.outputMode("update").foreachBatch(merge)
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        feed_until_rescaled(world, inbox, query, 2)
        inbox.put(2)
        query.processAllAvailable()
        assert query.exception() is None
        query.stop()
    assert merge.now == inbox.totals()
    assert merge.names == {key: f"name {key}" for key in range(7)}
    # In format 2, each commit names its state.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    assert json.loads(last.read_text().splitlines()[-1])["stateUniqueIds"]
