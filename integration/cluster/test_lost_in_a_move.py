"""Tests of executors while state is moved: a copy keeps out of the way, and no state is lost with one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.cluster.executors import Executors, with_executors
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.prepared import Orders, copies
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.state_store import REPARTITIONABLE
from integration.streaming.waiting import PATIENCE_S, eventually
from integration.streaming.world import state_partitions
from spark_elastic_lab.demo.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

# Enough to keep Spark busy for some seconds.
KEYS_PER_ROW = 60_000
ROWS = 10
# A copy of the state of fewer keys pauses for seconds after each task at this rate (bytes per second).
FEW, SLOW = 2_000, 6_000


@pytest.fixture
def policy(tmp_path: Path) -> ScriptedPolicy:
    return ScriptedPolicy(tmp_path / "policy")


@pytest.fixture
def executors(master: Cluster, jvm: Driver, policy: ScriptedPolicy) -> Iterator[Executors]:
    with with_executors(master, jvm, 3, {**PLUGIN, "spark.elastic.python": policy.python}) as found:
        yield found


def moving(executors: Executors, what: str = "is moved to") -> list[Any]:
    """Return the running stages of the re-partitioning, or of what is described so."""
    store = executors.spark.sparkContext._jsc.sc().statusStore()
    found = [store.activeStages().apply(i) for i in range(store.activeStages().size())]
    return [stage for stage in found if what in str(stage.description())]


def start(
    executors: Executors, inbox: Inbox, checkpoint: Path, pieces_per_row: int = KEYS_PER_ROW
) -> StreamingQuery:
    """Count pieces, of which each row has so many."""
    pieces = F.explode(F.sequence(F.lit(1), F.lit(pieces_per_row)))
    rows = executors.spark.readStream.schema(SCHEMA).json(str(inbox.folder))
    counts = rows.select("key", pieces.alias("piece")).groupBy("key", "piece").count()
    writer = counts.writeStream.outputMode("update").format("noop")
    return writer.option("checkpointLocation", str(checkpoint)).start()


def check(executors: Executors, inbox: Inbox, checkpoint: Path, pieces: int = KEYS_PER_ROW) -> None:
    # Spark does not detect the format of the state.
    for key, value in REPARTITIONABLE.items():
        executors.spark.conf.set(key, value)
    state = executors.spark.read.format("statestore").load(str(checkpoint))
    found = state.select("key.*", "value.count").groupBy("key").agg(F.sum("count"), F.count("*")).collect()
    expected = {key: (n * pieces, pieces) for key, (n, _) in inbox.totals().items()}
    assert {row[0]: (row[1], row[2]) for row in found} == expected


class Stores:
    """Where the coordinator of state stores has those of a query."""

    def __init__(self, executors: Executors, query: StreamingQuery) -> None:
        self._jvm: Any = executors.spark._jvm
        execution = query._jsq.streamingQuery()
        self._root, self._run = f"{execution.resolvedCheckpointRoot()}/state", execution.runId()
        self._coordinator = executors.spark._jsparkSession.streams().stateStoreCoordinator()

    def executor(self, partition: int) -> str:
        """Return the executor of a partition's store."""
        location = self._coordinator.getLocation(self._store(partition))
        assert location.isDefined()
        return str(location.get().rsplit("_", 1)[1])

    def move(self, partition: int, executor: str) -> None:
        """Report a partition's store as open on another executor, as a task there would."""
        nothing = self._jvm.scala.jdk.javaapi.CollectionConverters.asScala([]).toSeq()
        self._coordinator.reportActiveInstance(self._store(partition), "127.0.0.1", executor, nothing)
        assert self.executor(partition) == executor

    def _store(self, partition: int) -> Any:
        state = self._jvm.org.apache.spark.sql.execution.streaming.state
        return state.StateStoreProviderId(state.StateStoreId(self._root, 0, partition, "default"), self._run)


@pytest.mark.parametrize("stage", ["read", "written"])
def test_its_state_is_whole(executors: Executors, policy: ScriptedPolicy, tmp_path: Path, stage: str) -> None:
    inbox, checkpoint = Inbox(tmp_path / "in"), tmp_path / "checkpoint"
    query = start(executors, inbox, checkpoint)
    try:
        inbox.put(rows=ROWS)
        query.processAllAvailable()
        policy.order(now=1, counts=(3,))
        # Neither a multiple nor a divisor of the two partitions before: rows are shuffled, in two stages.
        first = eventually(lambda: moving(executors), "the state is being moved", every_s=0.005)[0].stageId()
        if stage == "written":
            eventually(
                lambda: any(found.stageId() != first for found in moving(executors)),
                "the new state is being written",
                every_s=0.005,
            )
        executors.kill()
        policy_said = eventually(
            lambda: [o for kind in ("ActionDone", "ActionFailed") for o in policy.seen(kind, query.id)][1:],
            "the rescale has an outcome",
            timeout_s=2 * PATIENCE_S,
        )
        assert policy_said[-1]["type"] == "ActionDone"
        inbox.put(rows=ROWS)
        query.processAllAvailable()
        assert query.isActive
        progress = query.lastProgress
        assert progress is not None
        assert progress["stateOperators"][0]["numShufflePartitions"] == 3
    finally:
        query.stop()
    check(executors, inbox, checkpoint)


def test_its_state_is_whole_if_the_move_is_prepared(
    executors: Executors, policy: ScriptedPolicy, tmp_path: Path
) -> None:
    inbox, checkpoint = Inbox(tmp_path / "in"), tmp_path / "checkpoint"
    query = start(executors, inbox, checkpoint)
    try:
        inbox.put(rows=ROWS)
        query.processAllAvailable()
        orders = Orders(policy, query.id)
        orders.begin(3)
        eventually(lambda: moving(executors, "is copied to"), "the state is being copied", every_s=0.005)
        executors.kill()
        inbox.put(rows=ROWS)
        query.processAllAvailable()
        is_prepared = orders.outcome()["type"] == "ActionDone"
        done = orders.move(3)
        assert done["type"] == "ActionDone"
        assert done["prepared"] == is_prepared
        inbox.put(rows=ROWS)
        query.processAllAvailable()
        assert state_partitions(query) == 3
        eventually(lambda: copies(checkpoint) == [], "no copy is left")
    finally:
        query.stop()
    check(executors, inbox, checkpoint)


def test_a_copy_keeps_to_executors_without_state(
    executors: Executors, policy: ScriptedPolicy, tmp_path: Path
) -> None:
    """State that a micro-batch opens elsewhere meanwhile is not in the way of the next tasks."""
    inbox, checkpoint = Inbox(tmp_path / "in"), tmp_path / "checkpoint"
    query = start(executors, inbox, checkpoint, FEW)
    try:
        inbox.put(rows=ROWS)
        query.processAllAvailable()
        states = Stores(executors, query)
        (free,) = {"0", "1", "2"} - {states.executor(0), states.executor(1)}
        before = executors.tasks()
        orders = Orders(policy, query.id)
        orders.begin(3, rate=SLOW)
        # After the state is read in one task, each partition is written by another, with a pause.
        eventually(lambda: executors.tasks() == {**before, free: before[free] + 2}, "it pauses")
        left, other = states.executor(0), states.executor(1)
        states.move(0, free)
        assert orders.outcome()["type"] == "ActionDone"
        after = executors.tasks()
        assert after[left] > before[left]
        assert after[other] == before[other]
    finally:
        query.stop()
    check(executors, inbox, checkpoint, FEW)
