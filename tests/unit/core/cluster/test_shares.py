"""Tests of several queries with declared bounds: which of them start, wait or give slots back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.bounds.declared import WantedBounds, WantedSharing
from spark_elastic.core.bounds.requirements import Bounds, Requirements, Vertex
from spark_elastic.core.bounds.shares import Claim, Share, Standing, share_out
from spark_elastic.core.cluster import supply
from spark_elastic.core.failures.strategy import FixedDelay
from tests.unit.core.builder import STATEFUL, STATELESS, Scene, decisions, only, reasons

Stage = Callable[..., Scene]
Pair = tuple[int, int]
QUERIES = ("a", "b", "c")


def world(stage: Stage, sharing: dict[str, dict[str, Any]] | None = None, **declared: Any) -> Scene:
    """Make an adaptive application with the bounds of queries by name, and more settings."""
    bounds = {name: declared.pop(name) for name in QUERIES if name in declared}
    return stage(
        mode="adaptive",
        rescale_policy="always",
        bounds={name: WantedBounds(lower=lower, upper=upper) for name, (lower, upper) in bounds.items()},
        sharing={name: WantedSharing(**wanted) for name, wanted in (sharing or {}).items()},
        **{"submission_stabilization_ms": 0, **declared},
    )


def submit(scene: Scene, query: str, facts: ev.QueryFacts = STATELESS) -> tuple[ac.Action, ...]:
    return scene.submit(evolve(facts, query=query, name=query))


def run(scene: Scene, query: str, facts: ev.QueryFacts = STATELESS) -> int | None:
    """Submit a query, see it start, and return the partitions it starts with."""
    start = only(submit(scene, query, facts), ac.StartQuery)
    scene.started(start.partitions or 200, query)
    return start.partitions


def states(scene: Scene) -> dict[str, str]:
    return {query: view.state for query, view in scene.scheduler.queries.items()}


def slots(scene: Scene) -> dict[str, int]:
    return {query: view.share.slots for query, view in scene.scheduler.queries.items()}


def claim(query: str, standing: Standing, lower: int, upper: int = 20, **more: Any) -> Claim:
    vertex = Vertex(id="shuffle", group=more.pop("group", query), bounds=Bounds(lower=lower, upper=upper))
    wanted = Requirements(vertices=(vertex,), bound_by="a test", **more)
    return Claim(query=query, requirements=wanted, standing=standing)


def ahead(share: Share) -> int | None:
    """Return the slots taken by others ahead of a query that has too few, None if it has enough."""
    return None if share.shortage is None else share.shortage.ahead


class TestWhereSlotsWereLost:
    def test_what_runs_without_its_slots_is_in_the_way_of_what_has_not_begun(self) -> None:
        claims = [claim("a", "running", 2), claim("b", "running", 2), claim("c", "waiting", 1)]
        shares = share_out(claims, 3)
        assert {query: ahead(share) for query, share in shares.items()} == {"a": None, "b": 2, "c": 4}

    def test_what_is_left_is_not_divided_before_those_that_run_have_of_it(self) -> None:
        shares = share_out([claim("a", "running", 2), claim("b", "running", 2)], 3)
        assert (shares["a"].slots, shares["b"].slots) == (2, 1)

    def test_who_has_failed_comes_after_those_that_run_with_the_same_priority(self) -> None:
        claims = [claim("a", "recovering", 2), claim("b", "running", 2)]
        assert ahead(share_out(claims, 2)["a"]) == 2
        claims[0] = claim("a", "recovering", 2, priority=1)
        assert {query: ahead(share) for query, share in share_out(claims, 2).items()} == {"a": None, "b": 2}

    def test_who_needs_no_further_slot_may_start_all_the_same(self) -> None:
        claims = [
            claim("a", "running", 1, group="default"),
            claim("b", "running", 3),
            claim("c", "waiting", 1, group="default"),
            claim("d", "waiting", 2, group="default"),
        ]
        shares = share_out(claims, 2)
        assert {query: ahead(share) for query, share in shares.items()} == {
            "a": None,
            "b": 1,
            "c": None,
            "d": 3,
        }


class TestLowerBounds:
    def test_two_queries_that_need_two_slots_each_do_not_both_start_on_two(self, stage: Stage) -> None:
        scene = world(stage, a=(2, 2), b=(2, 2))
        scene.start(1, 1)
        assert run(scene, "a") == 2
        held = submit(scene, "b")
        assert only(held, ac.HoldQuery).message == (
            "Waiting for resources (no time limit): needs 2 slots, but lower bounds of queries "
            "ahead of it reserve 2 of 2."
        )
        (said,) = [decision for decision in decisions(held) if decision.reason == "waiting_for_others"]
        assert (said.numbers["total_slots"], said.numbers["needed"], said.numbers["ahead"]) == (2, 2, 2)
        assert only(held, ac.RequestExecutors).total == 4
        scene.executor("7")
        assert states(scene) == {"a": "Executing", "b": "WaitingForResources"}
        assert only(scene.executor("8"), ac.StartQuery).query == "b"

    def test_one_that_ends_makes_room(self, stage: Stage) -> None:
        scene = world(stage, a=(2, 2), b=(2, 2))
        scene.start(2)
        run(scene, "a")
        submit(scene, "b")
        start = only(scene.terminated("a"), ac.StartQuery)
        assert (start.query, start.partitions) == ("b", 2)

    def test_other_bounds_make_room(self, stage: Stage) -> None:
        scene = world(stage, a=(2, 4), b=(2, 4))
        scene.start(3)
        run(scene, "a")
        submit(scene, "b")
        lowered = {"shuffle": (1, 4)}
        actions = scene.send(ev.RequirementsRequested, query="a", bounds=lowered, by="somebody")
        assert only(actions, ac.StartQuery).query == "b"

    def test_who_waits_in_vain_is_told_that_others_come_first(self, stage: Stage) -> None:
        scene = world(stage, a=(2, 2), b=(2, 2), resource_wait_ms=300_000)
        scene.start(3)
        run(scene, "a")
        submit(scene, "b")
        message = only(scene.advance(300_000), ac.FailQuery).message
        assert message is not None
        assert message.startswith(
            "Failed: needs 2 slots, but lower bounds of queries ahead of it reserve 2 of 3 after 5 min. "
            "Lower a bound, raise the query's priority, or raise "
        )

    def test_who_does_not_fit_keeps_no_other_from_starting(self, stage: Stage) -> None:
        scene = world(stage, a=(4, 4), b=(2, 2))
        scene.start(2)
        submit(scene, "a")
        assert run(scene, "b") == 2

    def test_queries_that_a_snapshot_shows_are_reckoned_with_before_one_starts(self, stage: Stage) -> None:
        scene = world(stage, a=(2, 2), b=(2, 2))
        held, running = (evolve(STATELESS, query=name, name=name) for name in ("a", "b"))
        queries = [
            ev.QueryInfo(facts=held, run="r1", run_state="held"),
            ev.QueryInfo(facts=running, run="r1", run_state="running", partitions=2),
        ]
        scene.start(2, queries=queries)
        assert states(scene) == {"a": "WaitingForResources", "b": "Executing"}

    def test_who_only_advises_keeps_nobody_waiting(self, stage: Stage) -> None:
        scene = world(stage, a=(2, 2), b=(2, 2), advise_only=True)
        scene.start(2)
        run(scene, "a")
        assert only(submit(scene, "b"), ac.StartQuery).partitions is None


class TestWhatIsShared:
    def test_in_reactive_mode_all_queries_use_all_slots(self, stage: Stage) -> None:
        scene = stage(sharing={"a": WantedSharing(weight=3.0, priority=2)})
        scene.start(3)
        assert (run(scene, "a"), run(scene, "b"), run(scene, "c")) == (3, 3, 3)

    def test_so_do_those_for_which_nothing_is_declared(self, stage: Stage) -> None:
        scene = world(stage, b=(1, 32_768))
        scene.start(2)
        assert (run(scene, "a"), run(scene, "b"), run(scene, "c")) == (2, 2, 2)
        assert "slots_shared" not in reasons(scene.actions)

    def test_they_are_one_group_beside_what_others_have_declared(self, stage: Stage) -> None:
        scene = world(stage, c=(2, 2))
        scene.start(2)
        run(scene, "a")
        run(scene, "b")
        held = submit(scene, "c")
        assert "waiting_for_others" in reasons(held)
        assert only(held, ac.RequestExecutors).total == 2  # executors have two slots each
        scene.executor("7")
        assert states(scene)["c"] == "CreatingExecutionGraph"
        assert slots(scene) == {"a": 1, "b": 1, "c": 2}

    def test_queries_of_one_group_use_the_same_slots(self, stage: Stage) -> None:
        scene = world(stage, {"a": {"group": "etl"}, "b": {"group": "etl"}}, a=(2, 2), b=(3, 4))
        scene.start(3)
        assert (run(scene, "a"), run(scene, "b")) == (2, 3)
        assert only(scene.executor("7"), ac.Rescale).partitions == 4

    def test_a_source_in_a_group_of_its_own_needs_slots_of_its_own(self, stage: Stage) -> None:
        wanted = {"source-0": WantedBounds(lower=2, upper=2)}
        scene = world(stage, {"a": {"groups": {"source-0": "in"}}}, a=(2, 4), source_bounds={"a": wanted})
        scene.start(3)
        facts = evolve(STATELESS, sources=(ev.SourceFacts(name="files", divisible=True),))
        held = submit(scene, "a", facts)
        assert "Waiting for resources (no time limit): 3 of 4 slots" in only(held, ac.HoldQuery).message
        start = only(scene.executor("7", cores=2), ac.StartQuery)
        assert start.partitions == 3  # of five slots, the source takes two

    def test_a_group_of_a_vertex_that_the_query_lacks_is_refused(self, stage: Stage) -> None:
        scene = world(stage, {"a": {"groups": {"source-4": "in"}}}, a=(1, 2))
        scene.start(2)
        (said,) = [one for one in decisions(submit(scene, "a")) if one.reason == "bounds_refused"]
        assert "'source-4' is not a vertex of this query, allowed is shuffle" in said.message


class TestPriority:
    def test_of_two_that_wait_the_one_of_the_higher_priority_starts(self, stage: Stage) -> None:
        scene = world(stage, {"b": {"priority": 1}}, a=(2, 2), b=(2, 2))
        scene.start()
        submit(scene, "a")
        submit(scene, "b")
        assert only(scene.executor("0", cores=2), ac.StartQuery).query == "b"
        assert states(scene)["a"] == "WaitingForResources"

    def test_of_equal_ones_the_one_that_was_submitted_first(self, stage: Stage) -> None:
        scene = world(stage, a=(2, 2), b=(2, 2))
        scene.start()
        submit(scene, "b")
        submit(scene, "a")
        assert only(scene.executor("0", cores=2), ac.StartQuery).query == "b"

    def test_one_that_has_not_started_yet_steps_back(self, stage: Stage) -> None:
        scene = world(stage, {"b": {"priority": 1}}, a=(2, 4), b=(2, 2), submission_stabilization_ms=10_000)
        scene.start(2)
        assert "waiting_for_more" in reasons(submit(scene, "a"))
        scene.advance(5_000)
        actions = submit(scene, "b")
        assert only(actions, ac.StartQuery).query == "b"
        assert "waiting_for_others" in reasons(actions)
        scene.advance(5_000)
        assert states(scene)["a"] == "WaitingForResources"

    def test_one_that_runs_is_not_stopped_for_one_that_waits(self, stage: Stage) -> None:
        scene = world(stage, {"b": {"priority": 1}}, a=(2, 2), b=(2, 2))
        scene.start(2)
        run(scene, "a")
        assert "waiting_for_others" in reasons(submit(scene, "b"))
        assert scene.query("a").partitions == 2

    def test_where_slots_are_lost_the_higher_priority_keeps_its_own(self, stage: Stage) -> None:
        scene = world(stage, {"b": {"priority": 1}}, a=(2, 4), b=(2, 4))
        scene.start(2, 2)
        run(scene, "a")
        run(scene, "b")
        lost = scene.lose("1")
        (kept,) = [one for one in decisions(lost) if one.reason == "lower_bounds_of_others"]
        assert kept.query == "a"
        assert kept.message == (
            "Keep 2 partitions: lower bounds need 2 slots, but queries ahead of it reserve 2 of 2."
        )
        assert scene.query("b").share.suffices
        scene.executor("2", cores=2)
        assert scene.query("a").share.suffices

    def test_after_a_failure_the_lower_priority_waits(self, stage: Stage) -> None:
        scene = world(
            stage, {"b": {"priority": 1}}, a=(2, 2), b=(2, 2), restart=FixedDelay(attempts=5, delay_ms=1_000)
        )
        scene.start(2, 2)
        run(scene, "a", STATEFUL)
        run(scene, "b", STATEFUL)
        scene.lose("1")
        scene.run_fails(query="a")
        scene.run_fails(query="b")
        scene.advance(1_000)
        assert states(scene) == {"a": "WaitingForResources", "b": "CreatingExecutionGraph"}

    def test_who_has_failed_keeps_its_slots_against_who_has_not_begun(self, stage: Stage) -> None:
        restart = FixedDelay(attempts=5, delay_ms=60_000)
        scene = world(stage, a=(2, 2), b=(1, 1), restart=restart)
        scene.start(2)
        run(scene, "a", STATEFUL)
        scene.run_fails(query="a")
        assert "waiting_for_others" in reasons(submit(scene, "b"))
        assert only(scene.advance(60_000), ac.StartQuery).query == "a"


class TestWeights:
    def test_what_is_above_the_lower_bounds_is_divided_by_weight(self, stage: Stage) -> None:
        scene = world(stage, {"a": {"weight": 3.0}}, a=(1, 20), b=(1, 20))
        scene.start(10)
        assert run(scene, "a") == 10
        actions = submit(scene, "b")
        assert only(actions, ac.StartQuery).partitions == 3
        assert only(actions, ac.Rescale).partitions == 7
        said = [one for one in decisions(actions) if one.reason == "slots_shared"]
        assert {one.query: (one.before, one.after) for one in said} == {"a": (10, 7), "b": (None, 3)}
        assert said[0].message == (
            "May use 3 of 10 slots: lower bounds reserve 2, the rest is shared by weight (1 of 4)."
        )
        (shrunk,) = [one for one in decisions(actions) if one.reason == "in_place"]
        assert (shrunk.numbers["slots"], shrunk.numbers["total_slots"]) == (7, 10)

    def test_nobody_gets_more_than_its_upper_bound(self, stage: Stage) -> None:
        scene = world(stage, {"a": {"weight": 100.0}}, a=(1, 3), b=(1, 20))
        scene.start(10)
        assert run(scene, "a") == 3
        assert run(scene, "b") == 7
        assert slots(scene) == {"a": 3, "b": 7}

    def test_a_query_that_ends_leaves_its_slots_to_the_others(self, stage: Stage) -> None:
        scene = world(stage, a=(1, 20), b=(1, 20))
        scene.start(6)
        run(scene, "a")
        run(scene, "b")
        assert only(scene.terminated("b"), ac.Rescale).partitions == 6

    def test_a_weight_alone_gives_a_query_slots_of_its_own(self, stage: Stage) -> None:
        scene = world(stage, {"a": {"weight": 2.0}})
        scene.start(6)
        run(scene, "a")
        run(scene, "b")
        assert sorted(slots(scene).values()) == [2, 4]

    def test_the_policy_file_changes_weights_while_queries_run(self, stage: Stage) -> None:
        scene = world(stage, {"a": {"weight": 9.0, "priority": 1}}, a=(1, 20), b=(1, 20))
        scene.start(8)
        run(scene, "a")
        run(scene, "b")
        sharing = {"a": WantedSharing(weight=1.0)}
        defaults = WantedSharing(weight=5.0)
        scene.send(ev.PolicyFileChanged, path="p.yaml", default_sharing=defaults, sharing=sharing)
        assert slots(scene) == {"a": 2, "b": 6}
        assert scene.query("a").requirements.priority == 1

    def test_a_move_is_ordered_for_the_share(self, stage: Stage) -> None:
        scene = world(stage, a=(1, 20), b=(1, 20), cooldown_ms=0, executing_stabilization_ms=1_000)
        scene.start(6)
        run(scene, "a", STATEFUL)
        scene.batches(300, 300, partitions=6, query="a")
        run(scene, "b", STATEFUL)
        scene.batches(300, 300, partitions=6, query="a")
        assert scene.query("a").target == 3
        assert only(tuple(scene.actions), ac.Rescale).query == "a"


@pytest.mark.parametrize("mode", ["reactive", "adaptive"])
def test_without_any_slot_everybody_waits_for_executors(stage: Stage, mode: str) -> None:
    scene = stage(mode=mode, submission_stabilization_ms=0)
    scene.start()
    for query in QUERIES:
        assert "waiting_for_resources" in reasons(submit(scene, query))
    scene.executor("0")
    assert set(states(scene).values()) == {"CreatingExecutionGraph"}


def test_slots_are_shared_out_as_often_as_who_wants_them_changes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int] = []

    def counted(claims: list[Claim], total: int, unasked: int | None) -> dict[str, Share]:
        times.append(total)
        return share_out(claims, total, unasked)

    def shared_out(act: Callable[[], object]) -> int:
        times.clear()
        act()
        return len(times)

    monkeypatch.setattr(supply, "share_out", counted)
    scene = world(stage, a=(2, 4), b=(1, 4), c=(4, 4))
    scene.start(4)
    run(scene, "a")
    usage = {"executor": "0", "cached_bytes": 0, "shuffle_bytes": 1}
    assert shared_out(lambda: scene.send(ev.ExecutorUsage, **usage)) == 0
    assert shared_out(lambda: scene.batch(100, partitions=4, query="a")) == 0
    assert shared_out(lambda: scene.send(ev.ExecutorAdded, executor="0", host="h", cores=4)) == 0
    assert shared_out(lambda: submit(scene, "c")) == 1  # once, and it has to wait
    assert shared_out(lambda: submit(scene, "b")) == 2  # once as a waiting query, once as a running one
    bounds = {"shuffle": (1, 3)}
    assert shared_out(lambda: scene.send(ev.RequirementsRequested, query="a", bounds=bounds, by="x")) == 1
    assert slots(scene) == {"a": 2, "c": 2, "b": 2}
    assert shared_out(lambda: scene.lose("0")) == 1
