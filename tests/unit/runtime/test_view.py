"""Tests that the view is correct although only changed parts are evaluated again."""

from __future__ import annotations

from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.actions import Decision
from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.settings import CoreSettings
from spark_elastic.http.metrics import metrics
from spark_elastic.runtime.publisher import DECISION_BUCKETS, DECISIONS_KEPT, Decisions, Publisher
from tests.unit.core.builder import STATEFUL, STATELESS, Scene
from tests.unit.core.shim import settle
from tests.unit.runtime.seen import seen


def eventful() -> Scene:
    """Two queries; an executor starts, a run fails, bounds change, one query ends."""
    settings = CoreSettings(
        mode="adaptive", rescale_policy="always", cooldown_ms=0, restart=FixedDelay(attempts=2, delay_ms=700)
    )
    scene = Scene(settings)
    scene.start(1, 1)
    scene.submit(STATEFUL)
    scene.submit(STATELESS)
    settle(scene)
    scene.executor("5")
    settle(scene)
    scene.run_fails()
    settle(scene)
    scene.send(ev.RequirementsRequested, query="counts", bounds={"shuffle": (1, 1)}, by="alice")
    settle(scene)
    scene.send(ev.CancelRequested, query="enrich", by="bob")
    settle(scene)
    return scene


def test_a_view_is_there_only_when_something_is_known() -> None:
    publisher = Publisher()
    publisher.publish()
    assert publisher.view is None
    assert publisher.queries == {}


def test_after_each_event_the_view_is_the_whole_truth() -> None:
    scene = eventful()
    views = seen(scene)
    causes = {record.cause for query in views[-1].queries.values() for record in query.history}
    assert causes >= {"initial_schedule", "new_resources", "recoverable_failover", "update_requirement"}
    assert {query.state for query in views[-1].queries.values()} == {"Executing", "Finished"}


def test_a_query_that_another_one_has_let_move_its_state_has_a_new_picture() -> None:
    scene = Scene(
        CoreSettings(
            rescale_policy="always",
            cooldown_ms=0,
            executing_stabilization_ms=0,
            max_delay_ms=0,
            max_concurrent_rescales=1,
        )
    )
    scene.start(2)
    for query in "ab":
        scene.running(2, evolve(STATEFUL, query=query, name=query))
    scene.executor("1", cores=2)
    scene.rescaled()
    before, after = seen(scene)[-2:]
    assert [view.queries["a"].state for view in (before, after)] == ["Restarting", "Executing"]
    assert [view.queries["b"].state for view in (before, after)] == ["Executing", "Restarting"]


def test_what_policies_say_of_a_query_that_nothing_has_happened_to_is_seen() -> None:
    scene = Scene(CoreSettings(mode="adaptive", policy=("autoscale",)))
    scene.start(2)
    for query in "ab":
        scene.running(2, evolve(STATELESS, query=query, name=query))

    def batch(query: str, number: int) -> None:
        scene.now += 300
        run, started = scene.query(query).run, scene.now - 200
        took = {"started": started, "duration_ms": 200, "input_rows": 1_000, "partitions": 2}
        scene.send(ev.QueryProgress, query=query, run=run, batch=number, **took)

    for number in range(3):
        batch("b", number)  # too soon after the last decision
    scene.now += 5_000
    batch("a", 0)
    before, after = (view.queries["b"].plan for view in seen(scene)[-2:])
    assert before is not None
    assert after is not None
    assert (before.outlook is None, after.outlook is None) == (True, False)


def test_a_picture_does_not_change_after_it_was_shown() -> None:
    scene = eventful()
    views = seen(scene)
    opened = [(view, query.history[0]) for view in views for query in view.queries.values() if query.history]
    early = [record for _, record in opened if record.ended is None]
    assert early
    assert all(record.reason is None for record in early)


def test_a_query_that_nothing_has_happened_to_keeps_its_picture() -> None:
    scene = Scene()
    scene.start(2)
    scene.running(2, STATEFUL)
    scene.running(2, STATELESS)
    scene.batch(300, 2, "counts")
    *_, before, after = seen(scene)
    assert after.queries["enrich"] is before.queries["enrich"]
    assert after.queries["counts"] is not before.queries["counts"]
    scene.send(ev.ExecutorUsage, executor="0", cached_bytes=1, shuffle_bytes=1)
    *_, before, after = seen(scene)
    assert all(after.queries[query] is before.queries[query] for query in ("counts", "enrich"))


def test_each_ended_rescale_is_counted_once_with_its_pause() -> None:
    scene = eventful()
    views = seen(scene)
    ended = [
        record for query in views[-1].queries.values() for record in query.history if record.ended is not None
    ]
    assert sum(views[-1].totals.rescales.values()) == len(ended)
    failed = next(record for record in ended if record.cause == "recoverable_failover")
    away = sum((stay.left or 0) - stay.entered for stay in failed.stays if stay.state != "Executing")
    assert away >= 700
    assert views[-1].totals.paused["recoverable_failover"] == away / 1_000
    assert "initial_schedule" not in {cause for cause, paused in views[-1].totals.paused.items() if paused}


def test_a_query_that_comes_again_is_counted_again() -> None:
    scene = Scene()
    scene.start(2)
    for run in range(3):
        scene.now += 10_000
        scene.submit(STATEFUL, run=f"r{run}")
        scene.started(2, run=f"r{run}")
        scene.send(ev.QueryTerminated, query="counts", run=f"r{run}")
    assert sum(seen(scene)[-1].totals.rescales.values()) == 3


def test_the_last_decisions_are_kept_and_no_more() -> None:
    decisions = Decisions()
    for number in range(DECISIONS_KEPT + 5):
        decisions.keep(
            Decision(number=number, at=1, kind="held", reason="cooldown", message="Waits.", cause="s1")
        )
    assert [d.number for d in decisions.kept()] == list(range(5, DECISIONS_KEPT + 5))


def test_decision_times_are_counted_by_their_length() -> None:
    decisions = Decisions()
    for seconds in (0.0, 0.0001, 0.00011, 60.0):
        decisions.took(seconds)
    assert decisions.buckets() == (2, 1, *[0] * (len(DECISION_BUCKETS) - 2), 1)
    assert decisions.seconds == 60.00021


def test_what_is_counted_of_a_query_never_falls() -> None:
    scene = eventful()
    scene.now += 5_000
    scene.submit(STATEFUL, run="r2")
    settle(scene)
    scene.now += 5_000
    scene.submit(STATELESS, run="r2")
    settle(scene)
    before: dict[tuple[str, str], float] = {}
    for view in seen(scene):
        for metric in metrics(view):
            if metric.kind != "counter":
                continue
            for labels, value in metric.samples:
                key = (metric.name, str(labels))
                assert value >= before.get(key, 0), key
                before[key] = value
    restarts = sum(value for (name, _), value in before.items() if name == "query_restarts_total")
    assert restarts >= 1
    assert [query.restarted for query in scene.scheduler.queries.values()] == [0, 0]
