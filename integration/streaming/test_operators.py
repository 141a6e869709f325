"""Tests that every kind of stateful operator keeps its state through rescales, with the output of plain
Spark.

One file is one micro-batch. Some counts are multiples of each other, some are not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, GroupedData, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from integration.selected import selected
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import Inbox
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.state_store import FORMAT_1, REPARTITIONABLE
from integration.streaming.waiting import eventually
from integration.streaming.world import stream

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CHANGELOG = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
AVRO = {"spark.sql.streaming.stateStore.encodingFormat": "avro"}
# Starting from 2: a multiple, a divisor, neither, one.
COUNTS = (6, 3, 2, 1)


def totals(rows: GroupedData) -> DataFrame:
    return rows.agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def timed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("time", F.timestamp_seconds("value")).withWatermark("time", "5 seconds")


def window_counts(rows: DataFrame) -> DataFrame:
    return totals(rows.groupBy(F.window("time", "5 seconds"), "key")).select("window.start", "key", "n")


def sessions(rows: DataFrame) -> DataFrame:
    gap = F.session_window("time", "8 seconds")
    # Sessions of even keys never end, those of odd keys end and start again.
    some = timed(rows).where("key % 2 = 0 OR value % 30 < 15")
    return totals(some.groupBy(gap, "key")).select("session_window.*", "key", "n", "total")


def joined(rows: DataFrame, how: str) -> DataFrame:
    left = timed(rows).select("key", "value", "time")
    right = (
        timed(rows)
        .where("value % 3 = 0")
        .select(
            F.col("key").alias("other"), (F.col("value") * 10).alias("tenfold"), F.col("time").alias("then")
        )
    )
    near = F.expr("key = other AND then BETWEEN time - INTERVAL 7 SECONDS AND time + INTERVAL 7 SECONDS")
    return left.join(right, near, how).select("key", "value", "tenfold")


def known(value: tuple[Any, ...] | None) -> tuple[Any, ...]:
    assert value is not None
    return value


def sums_in_pandas(rows: DataFrame) -> DataFrame:
    def add(key: Any, pieces: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            (total,) = known(state.get)
            state.remove()
            yield pd.DataFrame({"key": [key[0]], "total": [-total]})
            return
        (total,) = known(state.get) if state.exists else (0,)
        total += sum(int(piece["value"].sum()) for piece in pieces)
        state.update((total,))
        # Each key appears every seven seconds; every third key expires in between.
        state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + (20_000 if key[0] % 3 else 6_000))
        yield pd.DataFrame({"key": [key[0]], "total": [total]})

    schema, timeout = "key int, total long", GroupStateTimeout.EventTimeTimeout
    return timed(rows).groupBy("key").applyInPandasWithState(add, schema, "total long", "update", timeout)


class Memory(StatefulProcessor):
    """Keeps a value, a list, a map and a timer for each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._sum = handle.getValueState("sum", "total long")
        self._all = handle.getListState("all", "value long")
        self._by_digit = handle.getMapState("by_digit", "digit int", "n long")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        (total,) = known(self._sum.get()) if self._sum.exists() else (0,)
        for value in (int(value) for piece in rows for value in piece["value"]):
            total += value
            self._all.appendValue((value,))
            digit = (value % 10,)
            (seen,) = known(self._by_digit.getValue(digit)) if self._by_digit.containsKey(digit) else (0,)
            self._by_digit.updateValue(digit, (seen + 1,))
        self._sum.update((total,))
        self._handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 4_000)
        yield self._known(key, total, "rows")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        (total,) = known(self._sum.get())
        yield self._known(key, total, "timer")

    def close(self) -> None:
        pass

    def _known(self, key: Any, total: int, why: str) -> pd.DataFrame:
        every = sorted(value for (value,) in self._all.get())
        digits = sorted((digit, n) for (digit,), (n,) in self._by_digit.iterator())
        return pd.DataFrame(
            {"key": [key[0]], "total": [total], "all": [str(every)], "digits": [str(digits)], "why": [why]}
        )


def memories(rows: DataFrame) -> DataFrame:
    return (
        timed(rows)
        .groupBy("key")
        .transformWithStateInPandas(
            statefulProcessor=Memory(),
            outputStructType="key int, total long, all string, digits string, why string",
            outputMode="Update",
            timeMode="EventTime",
        )
    )


# One per kind of state in Spark; the others take too long for every run.
FIRST = ("aggregation", "deduplication", "inner_join", "transform_with_state")
FIRST_IN_FORMAT_1 = ("aggregation", "deduplication")
# Spark stores no other operator's state in Avro.
OF_AVRO = ("transform_with_state",)
# Each with its output mode.
OPERATORS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "aggregation": (lambda rows: totals(rows.groupBy("key")), "update"),
    "aggregation_complete": (lambda rows: totals(rows.groupBy("key")), "complete"),
    "window": (lambda rows: window_counts(timed(rows)), "append"),
    "session_window": (sessions, "append"),
    "distinct": (lambda rows: rows.select((F.col("value") % 23).alias("v")).distinct(), "update"),
    "deduplication": (lambda rows: timed(rows).dropDuplicates(["key"]), "append"),
    "deduplication_in_watermark": (lambda rows: timed(rows).dropDuplicatesWithinWatermark(["key"]), "append"),
    "deduplication_then_window": (
        lambda rows: window_counts(timed(rows).dropDuplicates(["value"])),
        "append",
    ),
    "inner_join": (lambda rows: joined(rows, "inner"), "append"),
    "left_outer_join": (lambda rows: joined(rows, "left_outer"), "append"),
    "left_semi_join": (
        lambda rows: timed(rows).join(
            timed(rows).where("value % 3 = 0").select(F.col("key").alias("k"), F.col("time").alias("t")),
            F.expr("key = k AND t BETWEEN time AND time + INTERVAL 7 SECONDS"),
            "left_semi",
        ),
        "append",
    ),
    "state_in_pandas": (sums_in_pandas, "update"),
    "transform_with_state": (memories, "update"),
}


def outputs(
    spark: SparkSession, inbox: Inbox, operator: str, between: Callable[[str, int], None]
) -> list[Row]:
    """Run it over a file for each of the counts and two more, with `between` before each but the first."""
    build, mode = OPERATORS[operator]
    found: list[Row] = []
    rows = build(stream(spark, inbox))
    query = (
        rows.writeStream.outputMode(mode).foreachBatch(lambda batch, _: found.extend(batch.collect())).start()
    )
    for number in range(len(COUNTS) + 2):
        if number > 0:
            between(query.id, number)
        inbox.put(rows=20)
        query.processAllAvailable()
    query.stop()
    return sorted(found, key=str)


@pytest.fixture(scope="module", autouse=True)
def python_of_workers() -> Iterator[None]:
    """Let Python workers use this Python, which has pandas."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        yield


@pytest.fixture(scope="module")
def expected(
    jvm: Driver, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, list[Row]]:
    """Return plain Spark's output."""
    folder = tmp_path_factory.mktemp("expected")
    with jvm.session({**REPARTITIONABLE, "spark.sql.shuffle.partitions": "2"}) as spark:
        names = selected(request, "operator")
        return {name: outputs(spark, Inbox(folder / name), name, lambda *_: None) for name in names}


@pytest.fixture(scope="module")
def rescaled(
    jvm: Driver,
    expected: dict[str, list[Row]],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[tuple[SparkSession, ScriptedPolicy]]:
    policy = ScriptedPolicy(tmp_path_factory.mktemp("rescaled") / "policy")
    with jvm.session({**PLUGIN, "spark.elastic.python": policy.python, **request.param}) as spark:
        yield spark, policy


@pytest.mark.parametrize(
    ("rescaled", "operator"),
    [
        *(
            pytest.param({}, name, id=name, marks=() if name in FIRST else pytest.mark.slow)
            for name in OPERATORS
        ),
        *(
            pytest.param(CHANGELOG, name, id=f"changelog-{name}", marks=pytest.mark.slow)
            for name in OPERATORS
        ),
        *(pytest.param(AVRO, name, id=f"avro-{name}", marks=pytest.mark.slow) for name in OF_AVRO),
        *(
            pytest.param(
                FORMAT_1,
                name,
                id=f"format-1-{name}",
                marks=() if name in FIRST_IN_FORMAT_1 else pytest.mark.slow,
            )
            for name in OPERATORS
        ),
        *(
            pytest.param(
                {**FORMAT_1, **CHANGELOG}, name, id=f"format-1-changelog-{name}", marks=pytest.mark.slow
            )
            for name in OPERATORS
        ),
    ],
    indirect=["rescaled"],
)
def test_its_output_is_that_of_plain_spark(
    expected: dict[str, list[Row]],
    rescaled: tuple[SparkSession, ScriptedPolicy],
    inbox: Inbox,
    operator: str,
) -> None:
    spark, policy = rescaled

    def rescale(query: str, number: int) -> None:
        if number <= len(COUNTS):
            policy.order(now=number, counts=COUNTS)
            eventually(lambda: policy.rescales(query) == number, f"rescale {number}")

    policy.order()
    found = outputs(spark, inbox, operator, rescale)
    assert expected[operator]
    assert found == expected[operator]


@pytest.mark.parametrize(
    ("rescaled", "operator"),
    [pytest.param({}, name, id=name, marks=() if name in FIRST else pytest.mark.slow) for name in OPERATORS],
    indirect=["rescaled"],
)
def test_its_output_is_that_of_plain_spark_if_moves_are_prepared(
    expected: dict[str, list[Row]],
    rescaled: tuple[SparkSession, ScriptedPolicy],
    inbox: Inbox,
    operator: str,
) -> None:
    spark, policy = rescaled

    def prepare_and_rescale(query: str, number: int) -> None:
        """Move to the count that was prepared before the last file, then prepare the next move."""
        if number > 1:
            policy.order(now=number - 1, counts=COUNTS)
            eventually(lambda: policy.rescales(query) == number - 1, f"rescale {number - 1}")
            done = policy.outcome("Rescale", query)
            assert done is not None
            assert done["prepared"]
        if number <= len(COUNTS):
            policy.order(prepare=number, now=number - 1, counts=COUNTS)
            eventually(lambda: len(policy.seen("PrepareMove", query)) == number, "preparation is ordered")
            done = eventually(lambda: policy.outcome("PrepareMove", query), f"preparation {number}")
            assert done is not None
            assert done["type"] == "ActionDone", done

    policy.order()
    found = outputs(spark, inbox, operator, prepare_and_rescale)
    assert expected[operator]
    assert found == expected[operator]


@pytest.mark.slow
@pytest.mark.parametrize(("rescaled", "operator"), [(AVRO, name) for name in OF_AVRO], indirect=["rescaled"])
def test_a_move_of_state_in_avro_is_not_prepared(
    rescaled: tuple[SparkSession, ScriptedPolicy], inbox: Inbox, operator: str
) -> None:
    spark, policy = rescaled
    policy.order()

    def prepare(query: str, number: int) -> None:
        policy.order(prepare=number)
        failed = eventually(lambda: policy.outcome("PrepareMove", query), "an outcome")
        assert failed is not None
        assert "Avro" in failed["error"]

    outputs(spark, inbox, operator, prepare)
