"""Tests that measurements outlive the driver, so that the next driver's first micro-batch is limited."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.bounds.kept import UnusableText
from spark_elastic.core.policies.memory import read, write
from spark_elastic.core.policies.view import Sample
from tests.unit.core.builder import decisions, reasons
from tests.unit.core.policies.world import SETTINGS, Load, Source, World

pytestmark = pytest.mark.long

SECOND = 1_000
FORM = "spark-elastic batches 1\n"
KAFKA = ev.QueryFacts(
    query="q", name="q", stateful=False, trigger="processing_time", trigger_ms=5_000, session_partitions=200,
    provider_chosen=False, provider="hdfs", checkpoint_format=1, in_place=True,
    sources=(ev.SourceFacts(name="kafka", divisible=True, ordered=True, limitable=True),),
)  # fmt: skip
WHOLE = st.integers(1, 10**9)
SAMPLES = st.builds(
    lambda rows, slots, partitions, took: Sample(
        input_rows=rows, slots=slots, partitions=partitions, duration_ms=took, gap_ms=None, at=7,
        started=7 - took
    ),
    WHOLE, st.integers(1, 10_000), st.integers(1, 10_000), st.integers(0, 10**7),
)  # fmt: skip


def world_of(facts: ev.QueryFacts, load: Load, *, backlog: int = 0, **settings: Any) -> tuple[World, Source]:
    world = World(evolve(SETTINGS, catch_up_ms=60 * SECOND, **settings))
    world.start(1)
    source = Source(facts, load)
    source.offered = backlog
    world.add(source)
    return world, source


def kept(world: World) -> list[ac.KeepText]:
    return [action for action in world.scene.actions if isinstance(action, ac.KeepText)]


def steady(_second: float) -> float:
    return 500


def uneven(second: float) -> float:
    return 300 + 300 * (second // 20 % 2)


def text_of_a_driver() -> str:
    world, _ = world_of(KAFKA, uneven)
    world.run(300)
    (order,) = kept(world)
    assert order.name == "batches"
    assert order.text is not None
    return order.text


def after_an_outage(text: str | None, **settings: Any) -> tuple[World, Source]:
    """Start with the stored measurements and two minutes of waiting rows."""
    world, source = world_of(evolve(KAFKA, kept_batches=text), steady, backlog=60_000, **settings)
    world.run(240)
    return world, source


@given(st.lists(SAMPLES, max_size=2))
def test_what_is_written_is_read(samples: list[Sample]) -> None:
    assert read(write(samples), at=7) == tuple(samples)


@given(st.lists(SAMPLES, min_size=30, max_size=60))
def test_little_is_kept_and_the_newest_of_it(samples: list[Sample]) -> None:
    found = read(write(samples), at=7)
    assert len(found) <= 16
    assert found[-1] == samples[-1]


@given(st.lists(st.builds(evolve, SAMPLES, slots=st.integers(0, 1), partitions=st.integers(0, 1))))
def test_what_tells_nothing_is_not_kept(samples: list[Sample]) -> None:
    assert all(min(one.slots, one.partitions) == 1 for one in read(write(samples), at=7))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it begins with '', not with 'spark-elastic batches 1'"),
        (FORM + "1 2 3\n", "'1 2 3': not enough values"),
        (FORM + "1 2 3 x\n", "'1 2 3 x': invalid literal"),
        (FORM + "0 2 3 4\n", "rows, slots and partitions are 1 or more"),
        (FORM + "1 2 3 -4\n", "ms 0 or more"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(UnusableText, match=why):
        read(text, at=7)


def test_the_first_micro_batch_of_the_next_driver_lasts_about_its_interval() -> None:
    world, source = after_an_outage(text_of_a_driver())
    blind, flooded = after_an_outage(None)
    assert flooded.longest > 20 * SECOND
    assert source.longest <= 8 * SECOND
    assert source.offered - source.read < 10 * 500, "all of it was read"
    assert "batches_recalled" in reasons(tuple(world.scene.actions))
    assert "batches_recalled" not in reasons(tuple(blind.scene.actions))
    world.scene.check()


def test_the_limit_is_there_before_the_query_begins() -> None:
    world, _ = world_of(evolve(KAFKA, kept_batches=text_of_a_driver()), steady)
    orders = [action for action in world.scene.actions if isinstance(action, ac.LimitRows | ac.StartQuery)]
    assert [type(order) for order in orders] == [ac.LimitRows, ac.StartQuery]
    assert {order.run for order in orders} == {world.scene.query("q").run}


def test_who_is_not_limited_knows_all_the_same_and_begins_with_all() -> None:
    world, source = after_an_outage(text_of_a_driver(), backpressure=False)
    assert "batches_recalled" in reasons(tuple(world.scene.actions))
    assert source.longest > 20 * SECOND


def test_what_is_kept_stays_while_it_is_true() -> None:
    world, source = world_of(KAFKA, uneven)
    world.run(3_600)
    assert len(kept(world)) == 1
    source.row_ms = 2.0
    world.run(1_200)
    first, *others = kept(world)
    assert 1 <= len(others) <= 2, "at most every ten minutes"
    assert others[0].text != first.text


def test_the_next_driver_keeps_nothing_that_is_no_news() -> None:
    text = text_of_a_driver()
    world, _ = world_of(evolve(KAFKA, kept_batches=text), uneven)
    world.run(1_200)
    assert not kept(world)


def test_who_only_advises_keeps_nothing() -> None:
    world, _ = world_of(KAFKA, uneven, advise_only=True)
    world.run(300)
    assert not kept(world)


def test_what_cannot_be_read_is_said_and_measured_again() -> None:
    world, _ = world_of(evolve(KAFKA, kept_batches="another form"), uneven)
    (said,) = [one for one in decisions(tuple(world.scene.actions)) if one.reason == "kept_batches_unusable"]
    assert "'another form'" in said.message
    world.run(300)
    assert len(kept(world)) == 1


def test_that_it_could_not_be_kept_is_said_and_tried_again_later() -> None:
    world, _ = world_of(KAFKA, uneven)
    while not kept(world):
        world.run(1)
    world.take(world.scene.fail(kept(world)[0], error="disk full"))
    (said,) = [one for one in decisions(tuple(world.scene.actions)) if one.reason == "batches_not_kept"]
    assert said.query == "q"
    assert "disk full" in said.message
    world.run(700)
    assert len(kept(world)) == 2
