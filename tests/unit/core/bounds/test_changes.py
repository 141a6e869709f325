"""Tests of bounds that change while queries run, start or wait."""

from __future__ import annotations

from typing import Any

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.bounds.declared import WantedBounds
from tests.unit.core.builder import Scene, Stage, adaptive, decisions, only, orders, reasons


def change(world: Scene, lower: int, upper: int) -> tuple[ac.Action, ...]:
    bounds = {"shuffle": (lower, upper)}
    return world.send(ev.RequirementsRequested, query="counts", bounds=bounds, by="somebody")


def running(stage: Stage, **settings: Any) -> Scene:
    world = adaptive(stage, cooldown_ms=0, executing_stabilization_ms=0, **settings)
    world.start(1, 1, 1, 1)
    world.submit()
    world.started(4)
    world.batches(900, 300, 300, partitions=4)
    return world


def test_above_its_upper_bound_a_query_shrinks_whether_that_pays_or_not(stage: Stage) -> None:
    world = running(stage)
    assert "awaiting_batch" in reasons(change(world, 1, 3))
    world.now += 500
    actions = world.batch(300, 4)
    assert "rescale_into_bounds" in reasons(actions)
    assert world.query().target == 3
    assert only(actions, ac.Rescale).partitions == 3
    world.rescaled()
    assert world.query().partitions == 3
    assert world.query().history[0].cause == "update_requirement"


def test_slots_that_it_could_not_use_are_no_news_to_it(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, 1)
    world.submit()
    world.started(2)
    world.batches(300, partitions=2)
    known = world.query()
    world.executor("7")
    world.lose("0")
    assert world.query().last_decision == known.last_decision
    assert world.query().history == known.history
    # Now one of the executors that it uses is gone.
    assert "counts" in [decision.query for decision in decisions(world.lose("1") + world.lose("2"))]


def test_a_lower_bound_that_cannot_be_met_stops_no_running_query(stage: Stage) -> None:
    world = running(stage)
    assert "below_lower_bounds" in reasons(change(world, 8, 8))
    assert orders(world.batches(300, 300, partitions=4)) == []
    assert world.query().state == "Executing"


def rescaling(stage: Stage, **settings: Any) -> Scene:
    """Bring a query to where its rescale from 4 to 3 is ordered."""
    world = running(stage, rescale_policy="always", **settings)
    world.lose("3")
    world.batches(300, 300, partitions=4)
    assert (world.query().state, world.query().target) == ("Restarting", 3)
    return world


def test_bounds_that_change_before_the_boundary_begin_a_record_of_the_rescale(stage: Stage) -> None:
    world = rescaling(stage)
    assert not [order for order in change(world, 1, 8) if isinstance(order, ac.Rescale)]
    world.now += 500
    world.rescaled(took_ms=2_000)
    new, old = world.query().history[:2]
    assert (new.cause, new.status, new.paused_ms) == ("update_requirement", "completed", 2_000)
    assert (old.status, old.reason) == ("ignored", "resource_requirements_updated")
    assert [d.numbers["took_ms"] for d in decisions(world.actions) if d.reason == "rescaled"] == [2_000]


def test_bounds_that_change_before_a_start_begin_a_record_of_it(stage: Stage) -> None:
    world = adaptive(stage, lower=1)
    world.start(1, 1)
    world.submit()
    assert world.query().state == "CreatingExecutionGraph"
    change(world, 1, 8)
    world.now += 2_000
    world.started(2)
    new, old = world.query().history[:2]
    assert (new.cause, new.status, new.paused_ms) == ("initial_schedule", "completed", 0)
    assert (old.status, old.reason) == ("ignored", "resource_requirements_updated")


def test_bounds_that_let_a_waiting_query_start_begin_a_record_of_that(stage: Stage) -> None:
    world = adaptive(stage, lower=3)
    world.start(1, 1)
    world.submit()
    change(world, 1, 8)
    world.started(2)
    new, old = world.query().history
    assert (new.cause, new.status, new.paused_ms) == ("initial_schedule", "completed", 0)
    assert (old.cause, old.reason) == ("initial_schedule", "resource_requirements_updated")


def test_slots_below_its_lower_bound_call_a_rescale_off_and_keep_it_from_nothing(stage: Stage) -> None:
    world = rescaling(stage, lower=2, resource_wait_ms=60_000)
    assert only(world.lose("2"), ac.Rescale).partitions == 2
    actions = world.lose("1")
    assert reasons(actions)[-1] == "rescale_called_off"
    assert only(actions, ac.Rescale).partitions == 4
    world.rescaled(took_ms=0)
    assert world.query().state == "Executing"
    assert world.query().history[0].reason == "no_resources_or_parallelisms_change"
    assert [order for order in orders(world.advance(600_000)) if isinstance(order, ac.FailQuery)] == []
    assert world.query().state == "Executing"


def test_the_policy_file_counts_more_than_the_settings(stage: Stage) -> None:
    world = running(stage)
    file = {"counts": {"shuffle": WantedBounds(lower=1, upper=2)}}
    actions = world.send(ev.PolicyFileChanged, path="p.yaml", bounds=file)
    assert "policy_file_read" in reasons(actions)
    world.now += 500
    world.batch(300, 4)
    assert world.query().target == 2


def test_bounds_for_a_vertex_that_is_not_there_are_said_and_left_out(stage: Stage) -> None:
    world = running(stage)
    file = {"counts": {"source-9": WantedBounds(upper=2)}}
    actions = world.send(ev.PolicyFileChanged, path="p.yaml", bounds=file)
    assert "bounds_refused" in reasons(actions)
    # A request for another query is no reason to report the refusal again.
    asked = {"query": "other", "bounds": {"shuffle": (1, 3)}, "by": "somebody"}
    assert reasons(world.send(ev.RequirementsRequested, **asked)) == ["bounds_requested"]


def test_a_file_that_is_refused_changes_nothing(stage: Stage) -> None:
    world = running(stage)
    actions = world.send(ev.PolicyFileRefused, path="p.yaml", errors=("line 3: no",))
    assert reasons(actions) == ["policy_file_refused"]
    assert orders(actions) == []


def test_what_is_said_of_a_query_has_its_name_also_before_it_is_known(stage: Stage) -> None:
    world = stage(mode="adaptive")
    world.start(2)
    world.send(ev.PolicyFileChanged, path="p.yaml", bounds={"counts": {"source-9": WantedBounds(upper=2)}})
    said = decisions(world.submit(query="11"))
    assert "bounds_refused" in [one.reason for one in said]
    assert {(one.query, one.name) for one in said if one.query is not None} == {("11", "counts")}
    nameless = decisions(world.submit(query="12", name=None))
    assert {(one.query, one.name) for one in nameless if one.query == "12"} == {("12", None)}


def test_what_is_held_for_bounds_is_not_any_more_once_they_are_relaxed(stage: Stage) -> None:
    world = adaptive(stage)
    world.start(1, 1, 1, 1)
    world.submit(checkpoint_partitions=2, provider="hdfs", checkpoint_format=1)
    world.started(2)
    world.batches(900, 300, partitions=2)
    assert world.query().hold is None
    change(world, 8, 8)
    assert world.query().hold == world.query().last_decision
    # Why it keeps its count has been said when it started, and is not said again.
    assert reasons(change(world, 1, 8)) == ["bounds_requested"]
    said = world.query().last_decision
    assert said is not None
    assert said.kind == "held"
    assert world.query().hold is None
    assert "below_lower_bounds" in reasons(change(world, 8, 8))
    assert world.query().hold == world.query().last_decision
