"""Tests of queries without a shuffle, whose sources follow the slots as far as they can be divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action, BoundSources, Rescale, SourceBounds
from spark_elastic.core.events import SourceRead, StageCompleted
from spark_elastic.core.load.reading import BATCHES, ShuffleWatch
from spark_elastic.core.query.demand import desired_slots
from tests.unit.core.builder import STATELESS, Scene, decisions, only, reasons

FILES = ev.SourceFacts(name="FileSource[/in]", divisible=True)
KAFKA = ev.SourceFacts(name="kafka", divisible=True, ordered=True)
RATE = ev.SourceFacts(name="RateStream")
MAX = 32_768
FACTS = evolve(STATELESS, query="counts", name="counts")


@pytest.fixture
def scene(stage: Callable[..., Scene]) -> Scene:
    scene = stage()
    scene.start(2)
    return scene


def begin(scene: Scene, *sources: ev.SourceFacts) -> None:
    scene.running(2, evolve(FACTS, sources=sources))


def batches(scene: Scene, number: int = BATCHES, rows: int = 1_000) -> tuple[Action, ...]:
    actions: tuple[Action, ...] = ()
    for _ in range(number):
        scene.now += 500
        actions += scene.batch(100, scene.query().partitions or 1, rows=rows)
    return actions


def shuffle(scene: Scene) -> None:
    scene.send(StageCompleted, query="counts", batch=1, tasks=2, duration_ms=10)


def ordered(actions: tuple[Action, ...]) -> list[Any]:
    return [action for action in actions if isinstance(action, BoundSources | Rescale)]


class TestWatch:
    def test_it_takes_some_batches_with_rows_to_know(self) -> None:
        watch = ShuffleWatch()
        assert [watch.committed(rows) for rows in (5, 0, 5, 0, 5, 5)] == [False] * 4 + [True, False]
        assert watch.has_none

    def test_one_shuffle_is_enough_whenever_it_comes(self) -> None:
        watch = ShuffleWatch()
        watch.stage_read_shuffle()
        assert not any(watch.committed(5) for _ in range(9))
        late = ShuffleWatch(batches=BATCHES)
        late.stage_read_shuffle()
        assert not late.has_none


def test_what_can_be_divided_follows_the_slots(scene: Scene) -> None:
    begin(scene, FILES, RATE)
    assert ordered(batches(scene, BATCHES - 1)) == []
    actions = batches(scene, 1)
    assert only(actions, BoundSources).sources == (
        SourceBounds(least=1, most=MAX, wanted=2),
        SourceBounds(least=1, most=MAX, wanted=0),
    )
    said, others = decisions(actions)
    assert said.message == (
        "Read sources in up to 2 tasks on 2 slots from the next micro-batch: the query has no shuffle."
    )
    assert others.message == (
        "Other sources are read as before: RateStream cannot be divided; a repartition() after "
        "it would give all slots something to do, at the price of a shuffle."
    )
    scene.done(only(actions, Rescale))
    more = scene.executor("1", 2)
    assert reasons(more) == ["sources_follow"]
    assert only(more, BoundSources).sources[0].wanted == 4
    scene.done(only(more, Rescale))
    assert scene.query().partitions == 4
    fewer = scene.lose("1")
    assert only(fewer, BoundSources).sources[0].wanted == 2


def test_where_tasks_bring_executors_sources_are_read_as_in_plain_spark(stage: Callable[..., Scene]) -> None:
    scene = stage()
    scene.start(2, spark_dynamicAllocation_enabled="true", spark_master="yarn")
    begin(scene, FILES)
    actions = batches(scene)
    assert (reasons(actions), ordered(actions)) == (["sources_bring_executors"], [])
    assert ordered(scene.executor("1", 2) + scene.lose("0")) == []


@pytest.mark.parametrize(
    ("source", "help"),
    [(KAFKA, "more partitions of its topic would help; spark"), (RATE, "a repartition() after it would")],
)
def test_what_cannot_be_divided_is_said_once(scene: Scene, source: ev.SourceFacts, help: str) -> None:
    begin(scene, source)
    actions = batches(scene)
    (said,) = decisions(actions)
    assert said.reason == "sources_stay"
    assert f"{source.name} cannot be divided" in said.message
    assert help in said.message
    assert ordered(actions) == []
    more = scene.executor("1", 2)
    assert (reasons(more), ordered(more)) == ([], [])


def test_files_that_cannot_be_split_are_named_once(scene: Scene) -> None:
    begin(scene, RATE, FILES)
    batches(scene)
    reads = (SourceRead(rows=9, tasks=1), SourceRead(rows=9, tasks=1, whole=True))
    first, second = (scene.batch(100, 2, rows=9, sources=reads) for _ in range(2))
    (said,) = decisions(first)
    assert said.message.startswith("Files of FileSource[/in] cannot be split (gzip, for example)")
    assert reasons(second) == []


def test_no_slots_are_desired_for_files_that_cannot_be_split(scene: Scene) -> None:
    scene.running(2, evolve(FACTS, sources=(FILES,), trigger_ms=1_000))
    desired = []
    for slots in (4, 6, 8):
        for _ in range(2 * BATCHES):
            scene.now += 1_000
            reads = (SourceRead(rows=9, tasks=1, whole=True),)
            scene.batch(900, scene.query().partitions or 1, rows=9, sources=reads)
        desired.append(desired_slots(scene.query().workload(), 0.75))
        scene.executor(str(slots), 2)
    assert desired == [1, 1, 1]


def test_files_that_fill_the_slots_are_not_named(scene: Scene) -> None:
    begin(scene, FILES)
    reads = (SourceRead(rows=9, tasks=2, whole=True),)
    assert "files_stay_whole" not in reasons(scene.batch(100, 2, rows=9, sources=reads))


def test_the_order_of_kafka_may_be_given_up(stage: Callable[..., Scene]) -> None:
    scene = stage(divide_ordered=True)
    scene.start(2)
    begin(scene, KAFKA)
    assert only(batches(scene), BoundSources).sources[0].wanted == 2


def test_with_a_shuffle_nothing_is_different(scene: Scene) -> None:
    begin(scene, FILES)
    shuffle(scene)
    assert ordered(batches(scene, 2 * BATCHES)) == []
    assert reasons(scene.executor("1", 2)) == ["in_place"]


def test_a_shuffle_that_comes_late_ends_it(scene: Scene) -> None:
    begin(scene, FILES)
    scene.done(only(batches(scene), Rescale))
    shuffle(scene)
    actions = batches(scene, 1)
    assert only(actions, BoundSources).sources == (SourceBounds(least=1, most=MAX),)
    assert not ordered(batches(scene))
    assert reasons(scene.executor("1", 2)) == ["in_place"]


def test_who_only_advises_changes_nothing(stage: Callable[..., Scene]) -> None:
    scene = stage(advise_only=True)
    scene.start(2)
    begin(scene, FILES)
    actions = batches(scene)
    assert ordered(actions) == []
    assert reasons(actions) == ["sources_follow"]


def test_a_declared_upper_bound_of_a_source_stays(stage: Callable[..., Scene]) -> None:
    scene = stage(mode="adaptive", submission_stabilization_ms=0)
    scene.start(4)
    begin(scene, FILES)
    bounds = {"shuffle": (1, MAX), "source-0": (1, 3)}
    scene.send(ev.RequirementsRequested, query="counts", bounds=bounds, by="alice")
    assert only(batches(scene), BoundSources).sources == (SourceBounds(least=1, most=3, wanted=4),)


def test_a_policy_process_that_is_replaced_orders_it_again(scene: Scene) -> None:
    begin(scene, FILES)
    scene.done(only(batches(scene), Rescale))
    facts = evolve(FACTS, sources=(FILES,))
    info = ev.QueryInfo(facts=facts, run="r1", run_state="running", partitions=2)
    assert only(scene.start(2, queries=[info]), BoundSources).sources[0].wanted == 2
