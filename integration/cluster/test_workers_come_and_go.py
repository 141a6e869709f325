"""Tests that three concurrent queries follow workers that come and go, and write what batch queries would.

`enrichment` is stateless, `totals` and `suppliers` are stateful on RocksDB, the latter into foreachBatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from integration.cluster.application import IN_FORCE_S, Application, application, executors, now
from integration.cluster.queries import start_enrichment, start_suppliers, start_totals
from integration.streaming.driver import Driver
from integration.streaming.http import Client
from integration.streaming.waiting import eventually
from spark_elastic.core.events import ExecutorDecommissioning, ExecutorRemoved
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

RESCALED = ("totals", "suppliers")
ALL = ("enrichment", *RESCALED)
# After this many micro-batches the file sink rewrites the log of all its files.
COMPACTED_EVERY = 10
# A micro-batch over this many files takes seconds.
BURST = 20
ATTEMPTS = 5


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        "spark.executor.cores": "1",
        "spark.ui.enabled": "true",
        # Otherwise an executor without work would end before the next check for decommissioned ones.
        "spark.test.executor.decommission.initial.sleep.millis": "5000",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("some"), conf) as running:
        yield running


def is_gone(app: Application, executor: str) -> bool:
    """Return whether the policy knows that an executor has ended."""
    return any(isinstance(s.event, ExecutorRemoved) and s.event.executor == executor for s in app.story.seen)


def settled_with(app: Application, workers: int) -> None:
    """Bring the cluster to this many workers of one slot, and wait until the queries use all slots."""
    since = now()
    if app.story.slots.total != workers:
        app.have_workers(workers)
    app.wait_in_force(workers, ALL, since)


def test_queries_start_with_the_slots_of_the_first_worker(app: Application) -> None:
    app.have_workers(1)
    app.feed.start()
    app.start("enrichment", start_enrichment)
    app.start("totals", start_totals)
    app.start("suppliers", start_suppliers)
    app.wait_in_force(1, ALL, 0)
    assert all(app.story.reasons(name)[0] == "start_per_slot" for name in ALL)
    rescalable = {order.rescalable for name in RESCALED for order in app.story.starts(name)}
    assert rescalable == {True}


def test_workers_that_join_are_used(app: Application) -> None:
    settled_with(app, 1)
    handles = {name: (query.id, query.runId) for name, query in app.queries.items()}
    joined = now()
    app.have_workers(3)
    app.wait_in_force(3, ALL, joined)

    assert app.story.rescaled_to("enrichment")
    assert app.story.named("enrichment").rescales == 0
    for name in RESCALED:
        assert app.story.rescaled_to(name)[-1] == 3
        assert app.story.named(name).rescales >= 1
        assert "rescale_always" in app.story.reasons(name, joined)
        progress = app.queries[name].lastProgress
        assert progress is not None
        assert progress.stateOperators[0].numShufflePartitions == 3
    assert {name: (query.id, query.runId) for name, query in app.queries.items()} == handles


def test_an_executor_lost_in_mid_batch_is_replaced(app: Application) -> None:
    settled_with(app, 3)
    began = now()
    for _ in range(ATTEMPTS):
        lost = now()
        for _ in range(BURST):
            app.feed.deliver()
        ((executor, process),) = eventually(lambda: executors(app.workers[-1]), "an executor").items()
        eventually(partial(app.running_tasks, executor), "it runs a task", every_s=0.005)
        process.kill()
        eventually(partial(is_gone, app, executor), "its end is known")
        app.wait_for_slots(3)
        app.wait_in_force(3, ALL, now())
        if app.story.batches_over_a_loss(lost):
            break
    assert app.story.batches_over_a_loss(began)
    app.check_alive()


def test_a_killed_worker_is_done_without(app: Application) -> None:
    settled_with(app, 3)
    killed = now()
    app.cluster.kill_worker(app.workers.pop())
    app.wait_for_slots(2)
    app.wait_in_force(2, ALL, killed)
    assert all(app.story.named(name).batches[-1].partitions == 2 for name in RESCALED)
    assert app.story.named("enrichment").rescales == 0
    app.check_alive()


def test_a_decommissioned_worker_counts_no_more_before_its_executor_is_gone(app: Application) -> None:
    settled_with(app, 2)
    leaving = app.workers.pop()
    ((executor, _),) = executors(leaving).items()
    told = now()
    app.cluster.decommission_worker(leaving)
    app.wait_in_force(1, ALL, told)
    seen = app.story.seen
    (notice,) = [
        i
        for i, s in enumerate(seen)
        if isinstance(s.event, ExecutorDecommissioning) and s.event.executor == executor
    ]
    assert (seen[notice - 1].slots, seen[notice].slots) == (2, 1)
    assert not any(
        isinstance(s.event, ExecutorRemoved) and s.event.executor == executor for s in seen[:notice]
    )
    app.cluster.remove_worker(leaving)


def test_what_we_run_ourselves_is_no_batch_stage(app: Application) -> None:
    """Executors that joined were warmed up with a scan of a query's state."""
    url = app.spark.sparkContext.uiWebUrl
    assert url is not None
    decided = Client(url, "/elastic/api/v1").get("/stages").json["stages"]
    assert not [stage for stage in decided if "StateScan" in stage["message"]]


def test_the_sink_of_a_moved_query_has_no_hole_when_its_log_is_compacted(app: Application) -> None:
    def moved_and_last() -> tuple[int, int]:
        batches = app.story.named("totals").batches
        pairs = pairwise(batches)
        return max(b.number for a, b in pairs if b.partitions != a.partitions), batches[-1].number

    def many() -> bool:
        app.check_alive()
        moved, last = moved_and_last()
        return last > moved + COMPACTED_EVERY

    eventually(many, "more batches than until a compaction", timeout_s=IN_FORCE_S)
    log = app.places.output / "totals" / "_spark_metadata"
    assert max(int(file.stem) for file in log.glob("*.compact")) > moved_and_last()[0]


def test_the_output_is_that_of_batch_queries(app: Application) -> None:
    app.check_output()


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
