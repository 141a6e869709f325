"""Tests of a run that fails: it restarts as the restart strategy allows, or ends with its own exception."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.failures.strategy import FixedDelay, NoRestart, RestartPolicy
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.transitions import (
    CANCELING,
    CREATING_EXECUTION_GRAPH,
    EXECUTING,
    FAILING,
    FINISHED,
    RESTARTING,
    WAITING_FOR_RESOURCES,
)
from tests.unit.core.builder import STATEFUL, STATELESS, Scene, matches, only, orders, reasons

TWICE = FixedDelay(attempts=2, delay_ms=5_000)


def scene(restart: RestartPolicy = TWICE) -> Scene:
    return Scene(CoreSettings(restart=restart))


def running(restart: RestartPolicy = TWICE, partitions: int = 2) -> Scene:
    world = scene(restart)
    world.start(2)
    world.running(partitions)
    world.batches(300, 300, partitions=partitions)
    return world


def test_without_a_strategy_a_failure_is_the_end() -> None:
    world = running(NoRestart())
    actions = world.run_fails()
    assert matches(only(actions, ac.FailQuery), ac.FailQuery, query="counts", message=None)
    assert world.query().state == FAILING
    assert reasons(actions) == ["failure_no_restart"]
    assert reasons(world.terminated(error="disk full")) == ["query_failed"]
    assert world.query().state == FINISHED
    world.check()


def test_starts_again_after_the_backoff_with_the_partitions_that_it_had() -> None:
    world = running()
    actions = world.run_fails()
    assert world.query().state == RESTARTING
    assert reasons(actions) == ["failure_restart", "backing_off"]
    assert [type(order) for order in orders(actions)] == [ac.HoldQuery]
    assert orders(world.advance(4_999)) == []
    start = only(world.advance(1), ac.StartQuery)
    assert matches(start, ac.StartQuery, partitions=2, rescalable=False)
    assert world.query().state == CREATING_EXECUTION_GRAPH
    world.started(2)
    assert world.query().state == EXECUTING
    newest = world.query().history[0]
    assert (newest.cause, newest.reason) == ("recoverable_failover", "succeeded")
    world.check()


def test_when_the_attempts_are_used_up_it_ends() -> None:
    world = running()
    for error in ("first", "second"):
        world.run_fails(error)
        world.advance(5_000)
        world.started(2)
    actions = world.run_fails("third")
    assert only(actions, ac.FailQuery).message is None
    assert [entry.failure.error for entry in world.query().exceptions] == ["third", "second", "first"]
    world.check()


def test_the_same_failure_at_the_same_offsets_three_times_is_poison() -> None:
    world = running(FixedDelay(attempts=100, delay_ms=0))
    for attempt in range(2):
        assert reasons(world.run_fails(f"no luck with task {attempt}"))[0] == "failure_restart"
        world.advance(0)
        world.started(2)
    actions = world.run_fails("no luck with task 2")
    assert reasons(actions) == ["failure_poison"]
    only(actions, ac.FailQuery)
    world.check()


def test_a_committed_batch_is_no_poison() -> None:
    world = running(FixedDelay(attempts=100, delay_ms=0))
    for _ in range(5):
        assert reasons(world.run_fails())[0] == "failure_restart"
        world.advance(0)
        world.started(2)
        world.batches(300, partitions=2)
    world.check()


def test_what_a_start_cannot_repair_is_not_tried() -> None:
    world = running()
    actions = world.run_fails("no such column", causes=("org.apache.spark.sql.AnalysisException",))
    assert reasons(actions) == ["failure_analysis"]
    only(actions, ac.FailQuery)
    world.check()


def test_a_failure_before_the_boundary_calls_the_rescale_off() -> None:
    world = Scene(
        CoreSettings(restart=TWICE, rescale_policy="always", cooldown_ms=0, executing_stabilization_ms=0)
    )
    world.start(2)
    world.running(2)
    world.executor("7", 2)
    world.until_rescale()
    assert world.query().state == RESTARTING
    order = world.last_order("Rescale")
    assert order is not None
    world.run_fails()
    view = world.query()
    assert (view.state, view.partitions, view.target) == (RESTARTING, 2, None)
    assert (view.restarted, view.rescaled) == (1, 0)
    # The order may be refused or never answered; neither has an effect.
    assert world.fail(order, "query counts waits for an answer") == ()
    start = only(world.advance(5_000), ac.StartQuery)
    assert matches(start, ac.StartQuery, partitions=2)
    world.started(2)
    assert world.query().history[0].cause == "recoverable_failover"
    world.batches(300, partitions=2)
    assert world.query().target == 4  # the failure does not keep it from scaling
    world.check()


@pytest.mark.parametrize("change", ["slots", "bounds", "time", "savepoint"])
@pytest.mark.parametrize("facts", [STATEFUL, STATELESS])
def test_nothing_is_rescaled_while_it_stands_at_a_failure(facts: ev.QueryFacts, change: str) -> None:
    settings = CoreSettings(
        mode="adaptive",
        restart=TWICE,
        rescale_policy="always",
        cooldown_ms=1_000,
        executing_stabilization_ms=0,
        max_delay_ms=0,
    )
    world = Scene(settings)
    world.start(2)
    world.running(2, facts)
    world.batches(300, partitions=2, query=facts.query)
    if facts.stateful:
        world.executor("1", 2)  # to be considered at the end of the cooldown
    world.now += 1_000  # the run fails exactly then
    actions = world.run_fails(query=facts.query)
    match change:
        case "slots":
            actions += world.executor("2", 2)
        case "bounds":
            bounds = {"shuffle": (1, 3)}
            actions += world.send(ev.RequirementsRequested, query=facts.query, bounds=bounds, by="somebody")
        case "time":
            actions += world.advance(4_999)
        case _:
            actions += world.send(ev.SavepointRequested, query=facts.query, by="somebody", target="/s")
    actions += world.advance(60_000)
    assert not [action for action in actions if isinstance(action, ac.Rescale)]
    assert only(actions, ac.StartQuery)
    world.check()


def test_a_start_that_fails_is_a_failure_like_any_other() -> None:
    world = running()
    world.run_fails("first")
    world.advance(5_000)
    assert world.query().state == CREATING_EXECUTION_GRAPH
    world.run_fails("second")
    assert world.query().state == RESTARTING
    world.advance(5_000)
    world.started(2)
    assert world.query().state == EXECUTING
    world.check()


def test_waits_for_resources_when_the_backoff_is_over() -> None:
    world = running()
    world.run_fails()
    world.lose("0")
    world.advance(5_000)
    assert world.query().state == WAITING_FOR_RESOURCES
    only(world.executor("9", 2), ac.StartQuery)
    world.check()


def test_follows_the_slots_once_it_runs_again() -> None:
    world = Scene(CoreSettings(restart=TWICE))
    world.start(2)
    world.running(2, STATELESS)
    world.run_fails(query="enrich")
    world.executor("9", 2)
    start = only(world.advance(5_000), ac.StartQuery)
    assert start.partitions == 4
    world.started(4, "enrich")
    world.check()


def test_a_failing_query_takes_no_other_one_with_it() -> None:
    world = running(NoRestart())
    world.running(2, evolve(STATEFUL, query="other", name="other"))
    actions = world.run_fails()
    assert {order.query for order in orders(actions) if isinstance(order, ac.FailQuery)} == {"counts"}
    assert world.query("other").state == EXECUTING
    world.check()


@pytest.mark.parametrize("strategy", [TWICE, NoRestart()])
def test_a_new_policy_process_decides_about_what_failed_meanwhile(strategy: RestartPolicy) -> None:
    world = scene(strategy)
    info = ev.QueryInfo(
        facts=STATEFUL, run="r1", run_state="failed", partitions=2, failure=ev.Failure(error="disk full")
    )
    actions = world.start(2, queries=[info])
    if isinstance(strategy, NoRestart):
        only(actions, ac.FailQuery)
    else:
        only(world.advance(5_000), ac.StartQuery)
        world.started(2)
    world.check()


def test_a_snapshot_does_not_shorten_a_backoff() -> None:
    world = running()
    world.run_fails()
    world.advance(2_000)
    info = ev.QueryInfo(
        facts=STATEFUL, run="r1", run_state="failed", partitions=2, failure=ev.Failure(error="disk full")
    )
    assert not [a for a in world.start(2, queries=[info]) if isinstance(a, ac.FailQuery)]
    assert orders(world.advance(2_999)) == []
    only(world.advance(1), ac.StartQuery)
    world.check()


@pytest.mark.parametrize(
    "state", [EXECUTING, RESTARTING, WAITING_FOR_RESOURCES, CREATING_EXECUTION_GRAPH, FAILING]
)
def test_can_be_canceled_in_every_state(state: str) -> None:
    world = scene(NoRestart() if state == FAILING else TWICE)
    if state == WAITING_FOR_RESOURCES:
        world.start()
        world.submit()
    elif state == CREATING_EXECUTION_GRAPH:
        world.start(2)
        world.submit()
    else:
        world.start(2)
        world.running(2)
        if state != EXECUTING:
            world.run_fails()
    assert world.query().state == state
    actions = world.send(ev.CancelRequested, query="counts", by="somebody")
    only(actions, ac.CancelQuery)
    assert world.query().state == CANCELING
    assert orders(world.send(ev.CancelRequested, query="counts", by="another")) == []
    assert reasons(world.terminated()) == ["canceled"]
    assert world.query().state == FINISHED
    world.check()


def test_the_application_may_stop_it_during_the_backoff() -> None:
    world = running()
    world.run_fails()
    assert reasons(world.terminated()) == ["finished"]
    assert world.query().history[0].reason == "job_finished"
    world.check()
