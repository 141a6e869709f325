"""Check that a custom policy conforms: a pure function that answers sensibly, and soon.

    from spark_elastic.policies.conformance import check

    def test_late_night_is_a_policy() -> None:
        check(LateNight(slots="4"))

The policy is shown made-up views. With hypothesis installed, the smallest view that breaks a rule is found;
without it, the views come from plain seeds.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from importlib.util import find_spec
from random import Random

from spark_elastic.core.bounds.requirements import MAX_PARALLELISM, SHUFFLE, Bounds, Requirements, Vertex
from spark_elastic.core.events import BatchStage, OffsetsBehind, QueryFacts, SourceFacts
from spark_elastic.core.policies.policy import Policy, Wish
from spark_elastic.core.policies.view import (
    Applied,
    BatchMetrics,
    ClusterView,
    ExecutorMetrics,
    QueryMetrics,
    Running,
    Sample,
    Wanted,
)
from spark_elastic.core.settings import CoreSettings
from spark_elastic.policies.answers import BadAnswer, ask

# ---- Made-up views: what a policy could be shown, both common and rare cases. All randomness comes from one
# `Random`, so a seed gives one view. Hypothesis can replace it.


_NOW = 1_767_571_200_000
_DAY_MS = 86_400_000
_GIB = 1 << 30


def made_up(chance: Random) -> ClusterView:
    """Make up a view: with no or many executors, with or without queries, at any time of a year."""
    at = _NOW + chance.randrange(365 * _DAY_MS)
    cores = chance.choice((1, 2, 4, 16))
    executors = tuple(
        ExecutorMetrics(
            executor=str(number), slots=cores, since=at - chance.randrange(_DAY_MS),
            held_bytes=chance.choice((0, 0, _GIB)),
        )
        for number in range(chance.choice((0, 1, 2, 5, 20)))
    )  # fmt: skip
    slots = cores * len(executors)
    ids = [f"query-{number}" for number in range(chance.choice((0, 1, 1, 2, 5)))]
    return ClusterView(
        at=at,
        mode="adaptive",
        settings=CoreSettings(mode="adaptive"),
        slots=slots,
        usual_slots=cores,
        executors=executors,
        requested=chance.choice((None, len(executors), len(executors) + 3)),
        startups_ms=tuple(chance.randrange(1_000, 120_000) for _ in range(chance.choice((0, 1, 5)))),
        queries={id: query(id, at, slots, chance) for id in ids},
        batch=_batch(at, slots, chance),
    )


def query(id: str, at: int, slots: int, chance: Random) -> QueryMetrics:
    """Make up a query as it could be at `at` (epoch ms) in an application with `slots` slots."""
    lower = chance.choice((1, 1, 1, 2, 8))
    upper = chance.choice((lower, lower + 7, 64, MAX_PARALLELISM))
    has = chance.randrange(min(slots, upper) + 1)
    partitions = chance.choice((None, max(1, has), 200, 1))
    facts = _facts(id, chance)
    held = chance.random() < 0.1
    samples = () if held else _samples(at, max(1, has), partitions or max(1, has), facts, chance)
    granted = None if not samples and chance.random() < 0.5 else chance.randint(lower, min(upper, lower + 40))
    applied = (Applied(at=at - chance.randrange(1, 3_600_000), slots=has, partitions=partitions),)
    return QueryMetrics(
        query=id,
        facts=facts,
        settings=CoreSettings(mode="adaptive", max_lag_ms=chance.choice((None, 10_000, 60_000))),
        requirements=_requirements(id, lower, upper),
        slots=has,
        partitions=None if held else partitions,
        held=held,
        idle=not held and chance.random() < 0.1,
        moving=not held and chance.random() < 0.1,
        movable=chance.random() < 0.8,
        samples=samples,
        running=None if held else _running(at, max(1, has), chance),
        applied=() if held else applied,
        wanted=_wanted(at, chance),
        granted=granted,
        granted_at=0 if granted is None else at - chance.randrange(3_600_000),
        raised_at=None if granted is None or chance.random() < 0.5 else at - chance.randrange(3_600_000),
        pauses_ms=tuple(chance.randrange(100, 60_000) for _ in range(chance.randrange(3))),
        state_bytes=0 if not facts.stateful else chance.randrange(50 * _GIB),
    )


def _running(at: int, slots: int, chance: Random) -> Running | None:
    """Make up a micro-batch that runs, or none."""
    if chance.random() < 0.5:
        return None
    return Running(
        at=at - chance.choice((0, 500, 100_000)),
        slots=slots,
        input_rows=chance.choice((None, 1, 10_000_000)),
        behind=chance.choice((None, 0, 10_000_000)),
        gap_ms=chance.choice((None, 1, 10_000)),
    )


def _batch(at: int, slots: int, chance: Random) -> BatchMetrics | None:
    """Make up batch stages: none yet, none any more, or some with finished, running and waiting tasks."""
    if chance.random() < 0.5:
        return None
    stages = tuple(_stage(number, at, slots, chance) for number in range(chance.choice((0, 1, 1, 4))))
    task_ms = chance.choice((10, 1_000, 60_000))
    executors = chance.choice((0, 0, 1, 10))
    return BatchMetrics(
        stages=stages,
        work_ms=float(task_ms * sum(stage.left for stage in stages)),
        crowded_ms=chance.choice((0, 0, 90_000)),
        active=bool(stages) or chance.random() < 0.5,
        executors=executors,
        peak=executors + chance.choice((0, 0, 5)),
    )


def _stage(number: int, at: int, slots: int, chance: Random) -> BatchStage:
    tasks = chance.choice((1, 200, 10_000))
    done = chance.randrange(tasks)
    running = min(slots, tasks - done)
    began = None if done == running == 0 else at - chance.randrange(3_600_000)
    return BatchStage(
        stage=number,
        tasks=tasks,
        done=done,
        running=running,
        run_ms=done * chance.choice((10, 1_000, 60_000)),
        launched=began,
        bytes=chance.choice((None, tasks << 20)),
    )


def _facts(id: str, chance: Random) -> QueryFacts:
    trigger_ms = chance.choice((0, 100, 1_000, 10_000, 60_000))
    stateful = chance.random() < 0.5
    return QueryFacts(
        query=id,
        name=chance.choice((None, id, "orders by customer")),
        stateful=stateful,
        trigger=chance.choice(("processing_time",) * 4 + ("available_now", "continuous")),
        trigger_ms=trigger_ms,
        session_partitions=200,
        provider_chosen=False,
        provider="rocksdb",
        checkpoint_format=2,
        in_place=not stateful,
        sources=(SourceFacts(name="kafka", divisible=True),),
    )


def _requirements(id: str, lower: int, upper: int) -> Requirements:
    vertex = Vertex(id=SHUFFLE, group=id, bounds=Bounds(lower=lower, upper=upper))
    return Requirements(vertices=(vertex,), bound_by="the declared upper bound")


def _samples(at: int, slots: int, partitions: int, facts: QueryFacts, chance: Random) -> tuple[Sample, ...]:
    """Make up micro-batches that take a fixed time and a time for their rows, newest last."""
    count = chance.choice((0, 1, 2, 5, 20))
    fixed_ms, row_us = chance.choice((0, 50, 2_000)), chance.choice((0.0, 1.0, 500.0))
    rate = chance.choice((0, 10, 1_000, 200_000))
    says_behind, behind = chance.random() < 0.5, chance.choice((0, 0, 10_000_000))
    interval = max(facts.trigger_ms, fixed_ms, 10)
    found: list[Sample] = []
    ends = at
    for number in reversed(range(count)):
        rows = round(rate * interval / 1_000 * chance.uniform(0.5, 1.5))
        took = round(fixed_ms + row_us * rows / slots / 1_000) + chance.randrange(20)
        started = ends = ends - max(interval, took)
        found.append(
            Sample(
                duration_ms=took,
                gap_ms=None if number == 0 else max(interval, took),
                input_rows=rows,
                partitions=partitions,
                slots=slots,
                batches=chance.choice((1, 1, 1, 4)),
                at=started + took,
                started=started,
                behind=behind if says_behind else None,
                offsets_behind=OffsetsBehind(avg=behind / 4, max=behind, min=0) if says_behind else None,
                source_tasks=chance.choice((None, 1, slots, 200)),
                steady=chance.random() < 0.8,
                total=chance.choice((0, slots, 2 * slots)),
            )
        )
    return tuple(reversed(found))


def _wanted(at: int, chance: Random) -> tuple[Wanted, ...]:
    slots, found, last = 40, [], at - 600_000
    for _ in range(chance.choice((0, 0, 1, 3))):
        began, last = last, last + chance.randrange(1_000, 200_000)
        found.append(Wanted(at=began, last=last, slots=slots, rows_per_ms=chance.choice((None, 2.5))))
        slots -= chance.randrange(1, 13)
    return tuple(found)


__all__ = ["NotConforming", "check", "check_view", "made_up"]

VIEWS = 200
LONGEST_S = 0.5
"""The seconds that a decision may take here. An application waits for 5 s, but it asks once a second."""


class NotConforming(AssertionError):
    """A policy breaks a rule; the text says which one, and how."""


def check(policy: Policy, *, views: int = VIEWS, longest_s: float = LONGEST_S) -> None:
    """Check a policy with `views` made-up views. Raises NotConforming.

    Each decision must be made within `longest_s` seconds.
    """
    name = type(policy).__name__

    def one(chance: Random) -> None:
        first, second = made_up(chance), made_up(chance)
        wish = _decided(name, policy, first, longest_s)
        _decided(name, policy, second, longest_s)
        again = _decided(name, policy, first, longest_s)
        if wish != again:
            raise NotConforming(
                f"{name} keeps something between two decisions: it wanted {wish}, and after another view it "
                f"wants {again} for {first}"
            )

    _for_many(one, views)


def check_view(policy: Policy, view: ClusterView, *, longest_s: float = LONGEST_S) -> Wish:
    """Check a policy with one view, such as one that it must get right; return its wish.

    Raises NotConforming.
    """
    return _decided(type(policy).__name__, policy, view, longest_s)


def _decided(name: str, policy: Policy, view: ClusterView, longest_s: float) -> Wish:
    before = pickle.dumps(view)
    began = time.perf_counter()
    wish = _asked(name, policy, view)
    took_s = time.perf_counter() - began
    if took_s > longest_s:
        raise NotConforming(f"{name} took {took_s:.2f} s, allowed are {longest_s:g} s, for {view}")
    copy: ClusterView = pickle.loads(before)
    if view != copy:
        raise NotConforming(f"{name} has changed what it was shown, which was {copy}: it may only look at it")
    again = _asked(name, policy, copy)
    if again != wish:
        raise NotConforming(f"{name} wants {wish} and then {again} for the same view: {view}")
    _check_sense(name, wish, view)
    return wish


def _asked(name: str, policy: Policy, view: ClusterView) -> Wish:
    try:
        return ask(name, policy, view)
    except BadAnswer as error:
        raise NotConforming(f"{name} has no usable answer: {error}, for {view}") from error


def _check_sense(name: str, wish: Wish, view: ClusterView) -> None:
    """Check that a wish makes sense to an application: it must not ask for times that have passed."""
    if wish.until is not None and wish.until <= view.at:
        raise NotConforming(f"{name} wants to be asked again at {wish.until}, which has passed at {view.at}")
    for id, wanted in wish.queries.items():
        if wanted.until is not None and wanted.until <= view.at:
            raise NotConforming(
                f"{name} wants to be asked again about {id} at {wanted.until}, which has passed at {view.at} "
                "(epoch ms)"
            )


def _for_many(one: Callable[[Random], None], count: int) -> None:
    if find_spec("hypothesis") is not None:
        _for_the_smallest(one, count)
        return
    for seed in range(count):
        one(Random(seed))


def _for_the_smallest(one: Callable[[Random], None], count: int) -> None:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    found: list[NotConforming] = []

    def noted(chance: Random) -> None:
        try:
            one(chance)
        except NotConforming as error:
            found.append(error)
            raise

    usual = settings(
        max_examples=count, deadline=None, derandomize=True, report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    try:
        usual(given(st.randoms(use_true_random=False))(noted))()
    except Exception:
        if not found:
            raise
        # The smallest one; hypothesis itself words failures that are not reproducible differently.
        raise found[-1] from None
