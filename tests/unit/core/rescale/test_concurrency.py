"""Tests of the limit on concurrent moves: the other queries keep running, queue up, and decide again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from attrs import evolve

from spark_elastic.core.actions import Action, Rescale, StartQuery
from spark_elastic.core.bounds.declared import WantedBounds, WantedSharing
from spark_elastic.core.events import (
    CancelRequested,
    QueryInfo,
    QueryStarted,
    QueryTerminated,
    RequirementsRequested,
)
from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.rescale.concurrency import PATIENCE_MS, Candidate, MoveQueue
from spark_elastic.core.scheduler import Scheduler
from tests.unit.core.builder import OLD, STATEFUL, STATELESS, Scene, Stage, decisions, only, orders, reasons

AT_ONCE = {"cooldown_ms": 0, "executing_stabilization_ms": 0, "max_delay_ms": 0, "rescale_policy": "always"}
BATCH_MS = {"a": 300, "b": 900, "c": 600}


def world(stage: Stage, *, most: int = 1, queries: Sequence[str] = "abc", **settings: object) -> Scene:
    """Let queries with 2 partitions run on 2 slots; b gains most from more slots, a least."""
    scene = stage(**{**AT_ONCE, "max_concurrent_rescales": most, **settings})
    scene.start(2)
    for query in queries:
        scene.running(2, evolve(STATEFUL, query=query, name=query))
    for query in queries:
        scene.batches(2_000, *[BATCH_MS[query]] * 3, partitions=2, query=query)
    return scene


def moved(actions: Sequence[Action]) -> list[tuple[str, int]]:
    return [(action.query, action.partitions) for action in actions if isinstance(action, Rescale)]


def said(actions: Sequence[Action]) -> dict[str | None, str]:
    return {decision.query: decision.reason for decision in decisions(actions)}


class TestInLine:
    """Queries that wait while others move."""

    def test_the_largest_gain_is_first_and_the_others_say_that_they_wait(self, stage: Stage) -> None:
        scene = world(stage)
        actions = scene.executor("1", cores=2)
        assert moved(actions) == [("b", 4)]
        assert said(actions) == {"b": "rescale_always", "a": "rescale_queued", "c": "rescale_queued"}
        waits = next(decision for decision in decisions(actions) if decision.query == "a")
        assert (waits.kind, waits.before, waits.after, waits.until) == ("held", 2, 4, None)
        assert waits.message == (
            "Waiting to scale 2 → 4 partitions: no more than 1 rescale may run at once "
            "(spark.elastic.adaptiveScheduler.maxConcurrentRescales)."
        )
        assert scene.query("a").state == "Executing"
        assert scene.query("a").target is None
        assert scene.query("a").history[0].status == "in_progress"

    def test_as_many_as_the_setting_says_move_at_once(self, stage: Stage) -> None:
        scene = world(stage, most=2)
        assert moved(scene.executor("1", cores=2)) == [("b", 4), ("c", 4)]

    def test_by_default_they_are_four(self, stage: Stage) -> None:
        scene = stage(**AT_ONCE)
        scene.start(2)
        for query in "123456":
            scene.running(2, evolve(STATEFUL, query=query, name=query))
            scene.batches(900, 300, 300, partitions=2, query=query)
        assert len(moved(scene.executor("1", cores=2))) == 4

    def test_who_waits_goes_on_and_says_nothing_new(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        assert scene.batches(300, 300, 300, partitions=2, query="a") == ()
        assert scene.query("a").last_progress is not None

    def test_what_runs_faster_by_now_is_later_in_line(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        scene.batches(*[3_000] * 5, partitions=2, query="a")
        assert moved(scene.rescaled()) == [("a", 4)]

    def test_in_place_nobody_waits(self, stage: Stage) -> None:
        scene = world(stage, queries="ab")
        scene.running(2, STATELESS)
        assert moved(scene.executor("1", cores=2)) == [("enrich", 4), ("b", 4)]

    def test_advice_moves_nothing_so_it_does_not_wait(self, stage: Stage) -> None:
        scene = world(stage, advise_only=True)
        actions = scene.executor("1", cores=2)
        assert set(said(actions).values()) == {"rescale_always"}
        assert orders(actions) == []


def outcome(kind: str) -> Callable[[Scene], tuple[Action, ...]]:
    def end(scene: Scene) -> tuple[Action, ...]:
        order = scene.last_order("Rescale")
        assert order is not None
        match kind:
            case "done":
                return scene.rescaled()
            case "failed":
                return scene.fail(order)
            case "micro-batch failed" | "failed for good":
                return scene.run_fails(query="b")
            case "ended":
                return scene.terminated("b")
            case "canceled":
                return scene.send(CancelRequested, query="b", by="somebody")
            case _:
                return scene.submit(evolve(STATEFUL, query="b", name="b"), run="r2")

    return end


ENDS = ("done", "failed", "micro-batch failed", "ended", "canceled", "submitted anew")


@pytest.mark.parametrize("kind", [*ENDS, "failed for good"])
def test_however_a_move_ends_the_next_one_begins_with_it(stage: Stage, kind: str) -> None:
    scene = world(stage, restart=FixedDelay(attempts=0 if kind == "failed for good" else 9, delay_ms=60_000))
    scene.executor("1", cores=2)
    assert moved(outcome(kind)(scene)) == [("c", 4)]
    assert moved(scene.rescaled()) == [("a", 4)]


class TestTheNextOne:
    """The next query moves to the count that fits the slots at that time."""

    def test_it_goes_where_the_slots_of_now_say(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        actions = scene.executor("2", cores=2)
        assert said(actions) == {"b": "rescale_changed", "a": "rescale_queued", "c": "rescale_queued"}
        assert moved(scene.rescaled()) == [("c", 6)]

    def test_who_does_not_want_to_move_any_more_leaves_the_line(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        actions = scene.lose("1")
        assert said(actions) == {
            "a": "parallelism_fits",
            "b": "rescale_called_off",
            "c": "parallelism_fits",
        }
        assert scene.query("a").history[0].reason == "no_resources_or_parallelisms_change"
        assert moved(scene.rescaled()) == []
        # It stabilizes, waits and moves again like any other query.
        assert moved(scene.executor("1", cores=2)) == [("b", 4)]

    def test_the_place_is_kept_by_an_order_that_takes_the_place_of_another(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        assert moved(scene.executor("2", cores=2)) == [("b", 6)]
        first = next(action for action in scene.actions if isinstance(action, Rescale))
        assert moved(scene.fail(first, "another one was ordered after it")) == []
        assert moved(scene.rescaled()) == [("c", 6)]

    def test_what_is_called_off_may_be_under_way_until_its_outcome_is_known(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        scene.batches(900, partitions=2, query="b")
        scene.send(RequirementsRequested, query="b", bounds={"shuffle": (2, 2)}, by="somebody")
        assert scene.query("b").target in (2, 4)
        assert moved(scene.rescaled()) == [("c", 4)]

    def test_after_a_loss_a_micro_batch_comes_first_but_the_place_is_kept(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        scene.executor("2", cores=2)
        scene.now += 1_000
        actions = scene.lose("2")
        assert said(actions) == {"a": "recovering", "b": "rescale_changed", "c": "recovering"}
        assert moved(scene.rescaled()) == []
        scene.now += 1_000
        actions = scene.batch(300, 2, "a")
        assert moved(actions) == [("a", 4)]
        scene.now += 1_000
        assert reasons(scene.batch(600, 2, "c")) == ["rescale_queued"]
        assert moved(scene.rescaled()) == [("c", 4)]


class TestOrder:
    """The order of the queue."""

    NOW = 5 * PATIENCE_MS

    def candidate(
        self, gain_ms: float | None = None, waited_ms: int = 0, *, into_bounds: bool = False
    ) -> Candidate:
        since = self.NOW - waited_ms
        return Candidate(since=since, partitions=4, into_bounds=into_bounds, gain_ms=gain_ms)

    def test_patience_then_bounds_then_the_gain_then_what_was_never_measured(self) -> None:
        in_order = [
            self.candidate(-1.0, PATIENCE_MS + 1),
            self.candidate(9.0, PATIENCE_MS),
            self.candidate(8.0, PATIENCE_MS),
            self.candidate(1.0, 60, into_bounds=True),
            self.candidate(5.0, 50, into_bounds=True),
            self.candidate(9.0, 10),
            self.candidate(5.0, 30),
            self.candidate(5.0, 20),
            self.candidate(0.0, 70),
            self.candidate(-5.0, 40),
            self.candidate(None, 90),
            self.candidate(None, 80),
        ]
        for mixed in (reversed(in_order), in_order[1::2] + in_order[::2]):
            assert sorted(mixed, key=lambda candidate: candidate.rank(self.NOW)) == in_order

    def test_a_query_outside_of_its_bounds_is_next_whatever_it_gains(self, stage: Stage) -> None:
        bounds = dict.fromkeys("abc", WantedBounds(lower=2, upper=8))
        together = dict.fromkeys("abc", WantedSharing(group="together"))
        scene = world(stage, mode="adaptive", bounds=bounds, sharing=together)
        assert moved(scene.executor("1", cores=2)) == [("b", 4)]
        actions = scene.send(RequirementsRequested, query="a", bounds={"shuffle": (3, 8)}, by="somebody")
        assert moved(actions) == []
        actions = scene.rescaled()
        assert moved(actions) == [("a", 4)]
        assert "rescale_into_bounds" in reasons(actions)

    def test_a_query_of_which_nothing_is_known_is_last(self, stage: Stage) -> None:
        scene = world(stage)
        scene.running(2, evolve(STATEFUL, query="0", name="0"))
        scene.executor("1", cores=2)
        assert [moved(scene.rescaled()) for _ in range(3)] == [[("c", 4)], [("a", 4)], [("0", 4)]]

    def test_nobody_is_overtaken_for_ever(self) -> None:
        """Two queries that gain more want to move again as soon as the other one has moved."""
        queue = MoveQueue(limit=1)
        queue.look("small", moving=False, candidate=self.candidate(1.0))
        now, moves = self.NOW, list[str]()
        while "small" not in moves:
            for query in {"b", "c"} - set(moves[-1:]):
                candidate = Candidate(since=now, partitions=4, into_bounds=False, gain_ms=9.0)
                queue.look(query, moving=False, candidate=candidate)
            for query in queue.next(now):
                queue.look(query, moving=True, candidate=None)
                moves.append(query)
            queue.look(moves[-1], moving=False, candidate=None)
            now += 20_000
        assert now - 20_000 == self.NOW + PATIENCE_MS
        assert len(moves) == PATIENCE_MS // 20_000 + 1


class TestNoOutcome:
    """A move whose outcome never arrives."""

    def test_after_ten_minutes_others_no_longer_wait_for_it(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        assert moved(scene.advance(PATIENCE_MS - 1)) == []
        actions = scene.advance(1)
        assert moved(actions) == [("c", 4)]
        assert said(actions)["b"] == "rescale_unfinished"
        assert decisions(actions)[0].message == (
            "Rescale 2 → 4 partitions not finished after 10 min: other queries no longer wait for it."
        )
        assert scene.query("b").state == "Restarting"
        # The trigger boundary came at last, so this is a rescale like any other.
        first = next(action for action in scene.actions if isinstance(action, Rescale))
        assert moved(scene.done(first, took_ms=900)) == []
        assert (scene.query("b").partitions, scene.query("b").state) == (4, "Executing")
        assert moved(scene.rescaled()) == [("a", 4)]

    def test_a_start_that_moves_state_counts_as_long_and_no_longer(self, stage: Stage) -> None:
        scene = starting(stage)
        scene.advance(PATIENCE_MS)
        actions = scene.submit(evolve(OLD, query="b", name="b"))
        assert only(actions, StartQuery).partitions == 2


def starting(stage: Stage) -> Scene:
    """Order a start that moves the state of query a from 200 partitions to 2."""
    scene = stage(max_concurrent_rescales=1)
    scene.start(2)
    actions = scene.submit(evolve(OLD, query="a", name="a"))
    assert only(actions, StartQuery).partitions == 2
    return scene


class TestStarts:
    """A start moves state as well, but does not queue."""

    def test_without_room_it_begins_with_what_it_had_and_is_rescaled_later(self, stage: Stage) -> None:
        scene = starting(stage)
        actions = scene.submit(evolve(OLD, query="b", name="b"))
        assert only(actions, StartQuery).partitions is None
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("start", "start_checkpoint_deferred")
        assert decision.message == (
            "Start with the checkpoint's 200 partitions, scale to 2 later: no more than 1 rescale "
            "may run at once (spark.elastic.adaptiveScheduler.maxConcurrentRescales)."
        )
        scene.started(200, "b")
        scene.batches(9_000, 9_000, partitions=200, query="b")
        assert moved(scene.advance(60_000) + scene.batch(9_000, 200, "b")) == []
        last = scene.query("b").last_decision
        assert last is not None
        assert last.reason == "rescale_queued"
        order = next(action for action in scene.actions if isinstance(action, StartQuery))
        scene.done(order)
        actions = scene.send(QueryStarted, query="a", run="r1", partitions=2)
        assert moved(actions) == [("b", 2)]

    def test_one_that_fails_makes_room(self, stage: Stage) -> None:
        scene = starting(stage)
        order = scene.last_order("StartQuery")
        assert order is not None
        scene.fail(order)
        assert only(scene.submit(evolve(OLD, query="b", name="b")), StartQuery).partitions == 2

    def test_one_with_a_new_checkpoint_moves_nothing(self, stage: Stage) -> None:
        scene = starting(stage)
        actions = scene.submit(evolve(STATEFUL, query="b", name="b"))
        assert only(actions, StartQuery).partitions == 2
        assert only(scene.submit(evolve(STATEFUL, query="c", name="c")), StartQuery).partitions == 2

    def test_after_a_failure_nothing_is_moved_so_it_does_not_count(self, stage: Stage) -> None:
        scene = world(stage, restart=FixedDelay(attempts=9, delay_ms=1_000))
        scene.executor("1", cores=2)
        scene.run_fails(query="a")
        actions = scene.advance(1_000)
        assert only(actions, StartQuery).partitions == 2
        assert moved(scene.rescaled()) == [("c", 4)]


class TestRecovered:
    """A policy process that continues counts the orders of its predecessor."""

    def go_on(self, scene: Scene, **partitions: int) -> tuple[Action, ...]:
        scene.scheduler = Scheduler.restore(json.loads(json.dumps(scene.scheduler.save())))
        infos = [
            QueryInfo(
                facts=evolve(STATEFUL, query=query, name=query),
                run="r1",
                run_state="running",
                partitions=partitions.get(query, 2),
            )
            for query in "abc"
        ]
        return scene.start(2, 2, queries=infos)

    def test_what_was_ordered_is_ordered_again_and_still_counts(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        assert moved(self.go_on(scene)) == [("b", 4)]
        assert moved(scene.batches(600, 600, partitions=2, query="c")) == []
        assert moved(scene.rescaled()) == [("c", 4)]

    def test_what_was_carried_out_unheard_makes_room(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        assert moved(self.go_on(scene, b=4)) == [("c", 4)]

    def test_what_waits_and_is_gone_by_then_is_nobody_s_business(self, stage: Stage) -> None:
        scene = world(stage)
        scene.executor("1", cores=2)
        scene.send(QueryTerminated, query="c", run="r1")
        assert moved(scene.rescaled()) == [("a", 4)]
