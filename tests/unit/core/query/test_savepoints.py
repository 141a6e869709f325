"""Tests of savepoints, taken while a query continues or with its end; a failed one changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATEFUL, STATELESS, Scene, decisions, matches, reasons
from tests.unit.core.shim import running, settle

FATAL: dict[str, Any] = {"causes": ("org.apache.spark.sql.AnalysisException",)}


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene(CoreSettings(restart=FixedDelay(attempts=1, delay_ms=1_000)))
    scene.start(2)
    scene.running(2)
    yield scene
    scene.check()


def request(scene: Scene, **fields: Any) -> tuple[ac.Action, ...]:
    filled = {"query": "counts", "by": "ann", "target": "/s", **fields}
    return scene.send(ev.SavepointRequested, **filled)


def orders(actions: tuple[ac.Action, ...]) -> list[Any]:
    return [action for action in actions if not isinstance(action, ac.Report | ac.SetTimer | ac.CancelTimer)]


def taken(scene: Scene, batch: int = 7) -> tuple[ac.Action, ...]:
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    path = f"/s/savepoint-{batch}"
    fields = {"query": "counts", "run": "r1", "action": order.id, "path": path, "batch": batch, "bytes": 10}
    actions = scene.send(ev.SavepointTaken, **fields)
    return actions + scene.done(order, took_ms=5)


def test_a_savepoint_is_taken_while_the_query_goes_on(scene: Scene) -> None:
    (order,) = orders(request(scene))
    assert order == ac.TakeSavepoint(
        id=order.id, cause=order.cause, query="counts", run="r1", target="/s", within="/s", stop=False
    )
    assert scene.query().state == "Executing"
    assert reasons(taken(scene)) == ["savepoint_taken"]
    (savepoint,) = scene.query().savepoints
    assert (savepoint.path, savepoint.batch, savepoint.bytes) == ("/s/savepoint-7", 7, 10)
    assert running(scene) == 2


@pytest.mark.parametrize("stop", [False, True])
def test_its_state_gets_the_format_that_was_asked_for(scene: Scene, stop: bool) -> None:
    (order,) = orders(request(scene, format="hdfs", stop=stop))
    assert order.format == "hdfs"
    # A policy that starts again does not know whether it was taken.
    scene.start(2, queries=[RUNNING])
    repeated = scene.last_order("TakeSavepoint")
    assert repeated is not None
    assert matches(repeated, ac.TakeSavepoint, target="/s", format="hdfs", stop=stop)
    assert repeated.id != order.id


def test_a_stateless_query_has_no_format_to_change() -> None:
    scene = Scene(CoreSettings())
    scene.start(2)
    scene.running(2, STATELESS)
    (order,) = orders(request(scene, query=STATELESS.query, format="hdfs"))
    assert order.format is None


@pytest.mark.parametrize("complete", [True, False])
def test_what_becomes_of_it_is_told_though_the_run_has_failed_meanwhile(scene: Scene, complete: bool) -> None:
    request(scene)
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    scene.run_fails()
    assert scene.query().state == "Restarting"
    actions = taken(scene) if complete else scene.fail(order, "the storage is away")
    assert reasons(actions) == ["savepoint_taken" if complete else "savepoint_failed"]
    assert scene.query().state == "Restarting"


def test_without_a_folder_it_goes_where_the_settings_say() -> None:
    scene = Scene(CoreSettings(savepoint_dir="hdfs://nn/s"))
    scene.start(2)
    scene.running(2)
    (order,) = orders(request(scene, target=None))
    assert isinstance(order, ac.TakeSavepoint)
    assert order.target == "hdfs://nn/s"
    scene.check()


@pytest.mark.parametrize(
    ("target", "within", "kept"), [(None, None, 3), ("hdfs://nn/s", "hdfs://nn/s", 3), ("/t", "/", 0)]
)
@pytest.mark.parametrize("stop", [True, False])
def test_older_ones_are_removed_in_the_folder_of_the_settings_alone(
    target: str | None, within: str | None, kept: int, stop: bool
) -> None:
    scene = Scene(CoreSettings(savepoint_dir="hdfs://nn/s", savepoints_kept=3))
    scene.start(2)
    scene.running(2)
    (order,) = orders(request(scene, target=target, within=within, stop=stop))
    assert isinstance(order, ac.TakeSavepoint)
    assert (order.keep, order.within) == (kept, within or "hdfs://nn/s")
    scene.check()


@pytest.mark.parametrize("stop", [True, False])
def test_without_any_folder_it_is_said_what_to_do(scene: Scene, stop: bool) -> None:
    actions = request(scene, target=None, stop=stop)
    assert orders(actions) == []
    assert reasons(actions) == ["savepoint_nowhere"]
    assert scene.query().state == "Executing"


def test_a_query_stops_with_its_savepoint(scene: Scene) -> None:
    actions = request(scene, stop=True)
    assert reasons(actions) == ["stop_with_savepoint"]
    (order,) = orders(actions)
    assert order == ac.TakeSavepoint(
        id=order.id, cause=order.cause, query="counts", run="r1", target="/s", within="/s", stop=True
    )
    assert scene.query().state == "StopWithSavepoint"
    # The shim ends the query once the savepoint is taken, without another order.
    assert orders(taken(scene)) == []
    assert reasons(scene.terminated()) == ["stopped_with_savepoint"]
    decision = scene.query().last_decision
    assert decision is not None
    assert decision.message == "Stopped with savepoint /s/savepoint-7"
    assert scene.query().history[0].reason == "succeeded"


def test_the_shim_carries_all_of_it_out(scene: Scene) -> None:
    request(scene, stop=True)
    settle(scene)
    assert scene.query().state == "Finished"
    assert [savepoint.path for savepoint in scene.query().savepoints] == ["/s/savepoint-7"]


def test_a_savepoint_that_fails_leaves_the_query_running(scene: Scene) -> None:
    request(scene, stop=True)
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    actions = scene.fail(order, "no space left")
    assert reasons(actions)[0] == "savepoint_failed"
    assert orders(actions) == []
    assert scene.query().state == "Executing"
    settle(scene)
    assert running(scene) == 2
    assert scene.query().savepoints == ()


def test_a_query_that_does_not_end_with_its_savepoint_is_ended(scene: Scene) -> None:
    request(scene, stop=True)
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    fields = {"query": "counts", "run": "r1", "path": "/s/savepoint-7", "batch": 7, "bytes": 10}
    assert orders(scene.send(ev.SavepointTaken, action=order.id, **fields)) == []
    assert [type(end) for end in orders(scene.fail(order, "it does not stop"))] == [ac.CancelQuery]
    assert reasons(scene.terminated()) == ["stopped_with_savepoint"]


@pytest.mark.parametrize("stop", [False, True])
def test_who_waits_for_a_savepoint_is_told_that_the_query_has_ended_before(scene: Scene, stop: bool) -> None:
    request(scene, stop=stop)
    actions = scene.terminated()
    assert reasons(actions) == ["savepoint_failed", "finished"]
    assert decisions(actions)[0].message == ("Savepoint failed: the query has ended before it was complete")


def test_an_end_that_comes_before_the_outcome_of_its_savepoint_is_no_failure(scene: Scene) -> None:
    request(scene, stop=True)
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    fields = {"query": "counts", "run": "r1", "path": "/s/savepoint-7", "batch": 7, "bytes": 10}
    scene.send(ev.SavepointTaken, action=order.id, **fields)
    assert reasons(scene.terminated()) == ["stopped_with_savepoint"]


def test_the_slots_are_followed_again_when_a_savepoint_has_failed(scene: Scene) -> None:
    request(scene, stop=True)
    scene.executor("1", cores=2)
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    scene.fail(order)
    scene.until_rescale()
    assert scene.query().target == 4


def test_no_rescale_begins_while_it_stops(scene: Scene) -> None:
    request(scene, stop=True)
    scene.executor("1", cores=2)
    scene.advance(600_000)
    assert scene.query().state == "StopWithSavepoint"
    assert not any(isinstance(action, ac.Rescale) for action in scene.actions)


@pytest.mark.parametrize("saved", [True, False])
def test_a_failure_on_the_way_is_looked_at_after_the_savepoint(scene: Scene, saved: bool) -> None:
    request(scene, stop=True)
    actions = scene.run_fails()
    assert reasons(actions) == ["taking_savepoint"]
    # The savepoint is taken while the query is held; until then it must not give up.
    assert [type(order) for order in orders(actions)] == [ac.HoldQuery]
    assert scene.query().state == "StopWithSavepoint"
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    if saved:
        taken(scene)
    else:
        scene.fail(order)
    assert scene.query().state == "Restarting"
    settle(scene)
    assert running(scene) == 2


def test_the_exception_of_a_query_that_fails_for_good_names_the_savepoint(scene: Scene) -> None:
    request(scene, stop=True)
    scene.run_fails(**FATAL)
    (end,) = orders(taken(scene))
    assert isinstance(end, ac.FailQuery)
    assert end.message is not None
    assert "/s/savepoint-7" in end.message


def test_one_that_was_under_way_before_is_not_the_one_of_the_stop(scene: Scene) -> None:
    request(scene, target="/earlier")
    earlier = scene.last_order("TakeSavepoint")
    assert earlier is not None
    request(scene, stop=True)
    fields = {"query": "counts", "run": "r1", "path": "/earlier/savepoint-5", "batch": 5, "bytes": 10}
    assert orders(scene.send(ev.SavepointTaken, action=earlier.id, **fields)) == []
    scene.done(earlier, took_ms=5)
    assert orders(taken(scene)) == []
    assert reasons(scene.terminated()) == ["stopped_with_savepoint"]
    decision = scene.query().last_decision
    assert decision is not None
    assert decision.message == "Stopped with savepoint /s/savepoint-7"
    assert [savepoint.batch for savepoint in scene.query().savepoints] == [7, 5]


def test_a_query_that_is_being_rescaled_can_be_saved_and_not_stopped_with_it(scene: Scene) -> None:
    scene.executor("1", cores=2)
    scene.until_rescale()
    assert reasons(request(scene, stop=True)) == ["savepoint_refused"]
    assert [type(order) for order in orders(request(scene))] == [ac.TakeSavepoint]
    assert scene.query().state == "Restarting"


def test_a_query_that_has_not_started_has_nothing_to_save() -> None:
    scene = Scene()
    scene.start()
    scene.submit()
    assert reasons(request(scene)) == ["savepoint_refused"]
    scene.check()


RUNNING = ev.QueryInfo(facts=STATEFUL, run="r1", run_state="running", partitions=2)
FAILED = ev.QueryInfo(
    facts=STATEFUL,
    run="r1",
    run_state="failed",
    partitions=2,
    failure=ev.Failure(error="disk full", offsets="[7]", causes=("java.io.IOException",), of_io=True),
)


@pytest.mark.parametrize("carried_out", ["first", "second"])
def test_a_policy_that_goes_on_orders_a_savepoint_with_the_end_again(scene: Scene, carried_out: str) -> None:
    request(scene, stop=True)
    first = scene.last_order("TakeSavepoint")
    actions = scene.start(2, queries=[RUNNING])
    assert "stopping_again" in reasons(actions)
    second = scene.last_order("TakeSavepoint")
    assert first is not None
    assert second is not None
    assert matches(second, ac.TakeSavepoint, target="/s", stop=True)
    # The first order may be lost or still pending.
    order = first if carried_out == "first" else second
    fields = {"query": "counts", "run": "r1", "path": "/s/savepoint-7", "batch": 7, "bytes": 10}
    scene.send(ev.SavepointTaken, action=order.id, **fields)
    assert scene.query().state == "StopWithSavepoint"
    assert reasons(scene.terminated()) == ["stopped_with_savepoint"]


def test_only_the_last_one_that_fails_lets_the_query_go_on(scene: Scene) -> None:
    request(scene, stop=True)
    first = scene.last_order("TakeSavepoint")
    scene.start(2, queries=[RUNNING])
    second = scene.last_order("TakeSavepoint")
    assert first is not None
    assert second is not None
    scene.fail(first)
    assert scene.query().state == "StopWithSavepoint"
    scene.fail(second)
    assert scene.query().state == "Executing"


def test_a_policy_that_goes_on_ends_a_query_that_is_saved(scene: Scene) -> None:
    request(scene, stop=True)
    taken(scene)
    assert [type(order) for order in orders(scene.start(2, queries=[RUNNING]))][1:] == [ac.CancelQuery]
    assert reasons(scene.terminated()) == ["stopped_with_savepoint"]


def test_a_policy_that_goes_on_takes_the_savepoint_of_a_failed_query_again(scene: Scene) -> None:
    request(scene, stop=True)
    scene.run_fails()
    # The query is held before the savepoint is ordered.
    _, hold, save = orders(scene.start(2, queries=[FAILED]))
    assert (type(hold), type(save)) == (ac.HoldQuery, ac.TakeSavepoint)
    taken(scene)
    assert scene.query().state == "Restarting"


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_policy_that_goes_on_takes_a_savepoint_again_whose_outcome_may_be_lost(
    scene: Scene, has_failed: bool
) -> None:
    if has_failed:
        scene.run_fails()
    request(scene)
    first = scene.last_order("TakeSavepoint")
    actions = scene.start(2, queries=[FAILED if has_failed else RUNNING])
    assert [r for r in reasons(actions) if "sav" in r] == ["saving_again", "savepoint"]
    second = scene.last_order("TakeSavepoint")
    assert first is not None
    assert second is not None
    assert second.id != first.id
    assert matches(second, ac.TakeSavepoint, target="/s", within="/s", stop=False)
    assert reasons(taken(scene)) == ["savepoint_taken"]
    # No order is left that could be lost the next time.
    assert "saving_again" not in reasons(scene.start(2, queries=[FAILED if has_failed else RUNNING]))
