"""Tests of bottlenecks that more executors cannot remove."""

from __future__ import annotations

from attrs import evolve

from spark_elastic.core.events import FullestPartition, OffsetsBehind, SourceFacts
from spark_elastic.core.policies.autoscale.measured import (
    Basis,
    Batches,
    Bottleneck,
    Hot,
    bottleneck,
    hot_behind,
    hot_input,
)
from spark_elastic.core.policies.view import QueryMetrics
from tests.unit.core.builder import STATEFUL
from tests.unit.core.policies.seen import batches, query, sample, work


def limit(of: QueryMetrics) -> Bottleneck | None:
    return bottleneck(Basis.of(of, Batches.of(of), of.slots, 30_000.0))


def test_fewer_source_tasks_than_slots_limit_a_query_without_state() -> None:
    found = limit(query(batches(3, 1_000, 8, source_tasks=3)))
    assert found is not None
    assert (found.slots, found.reason, found.numbers) == (3, "autoscale_source_tasks", {"tasks": 3})


def test_micro_batches_without_rows_prove_no_limit() -> None:
    assert limit(query(batches(3, 0, 8, source_tasks=0))) is None
    assert (
        limit(query(batches(3, 1_000, 8, source_tasks=8), earlier=batches(3, 0, 8, source_tasks=0))) is None
    )


def test_as_many_source_tasks_as_slots_prove_no_limit() -> None:
    assert limit(query(batches(3, 1_000, 8, source_tasks=8))) is None


def test_what_was_proved_with_more_slots_is_not_forgotten_with_fewer() -> None:
    limited = query(batches(3, 1_000, 3, source_tasks=3), earlier=batches(3, 1_000, 8, source_tasks=3))
    found = limit(limited)
    assert found is not None
    assert found.slots == 3


def test_a_shuffle_uses_more_slots_than_the_source_has_tasks() -> None:
    assert limit(query(batches(3, 1_000, 8, source_tasks=3), facts=STATEFUL)) is None


def test_a_source_that_can_be_divided_limits_nothing() -> None:
    divisible = query(batches(3, 1_000, 8, source_tasks=3))
    facts = evolve(divisible.facts, sources=(SourceFacts(name="topic", divisible=True),))
    assert limit(evolve(divisible, facts=facts)) is None


def test_files_that_cannot_be_split_are_no_source_that_can() -> None:
    packed = query(batches(3, 1_000, 8, source_tasks=3, whole=True))
    facts = evolve(packed.facts, sources=(SourceFacts(name="files", divisible=True),))
    found = limit(evolve(packed, facts=facts))
    assert found is not None
    assert (found.slots, found.reason) == (3, "autoscale_source_tasks")


def test_files_that_cannot_be_split_are_a_limit_with_as_many_slots_too() -> None:
    # Otherwise it would get one slot more and give it back, again and again.
    found = limit(query(batches(3, 1_000, 3, source_tasks=3, whole=True)))
    assert found is not None
    assert found.slots == 3


def test_partitions_of_a_topic_are_divided_only_where_their_order_does_not_matter() -> None:
    read = query(batches(3, 1_000, 8, source_tasks=3))
    facts = evolve(read.facts, sources=(SourceFacts(name="topic", divisible=True, ordered=True),))
    found = limit(evolve(read, facts=facts))
    assert found is not None
    assert found.slots == 3
    free = evolve(read.settings, divide_ordered=True)
    assert limit(evolve(read, facts=facts, settings=free)) is None


def test_a_shuffle_without_state_uses_more_slots_as_well() -> None:
    shuffled = query(batches(3, 1_000, 8, source_tasks=3, whole=True, work=work()))
    assert limit(shuffled) is None


def test_a_count_that_cannot_be_changed_limits_its_query() -> None:
    found = limit(query(batches(3, 1_000, 4), movable=False, partitions=4))
    assert found is not None
    assert (found.slots, found.reason) == (4, "autoscale_fixed_count")


def test_the_tightest_limit_counts() -> None:
    worse = (*batches(3, 1_000, 2), *batches(3, 1_000, 8, fixed=2_000, source_tasks=6))
    found = limit(query(worse))
    assert found is not None
    assert (found.slots, found.reason) == (2, "autoscale_made_worse")


def test_a_partition_with_most_of_what_is_behind_is_hot() -> None:
    # Ten partitions with 1000 waiting rows, 700 of them in one.
    one = sample(behind=1_000, offsets_behind=OffsetsBehind(avg=100.0, max=700, min=0))
    assert hot_behind(one) == Hot(share=0.7)
    fullest = FullestPartition(name="words-2", rows=900, all_rows=1_200, partitions=10)
    assert hot_behind(evolve(one, fullest=fullest)) == Hot(share=0.7, partition="words-2")
    assert hot_behind(evolve(one, offsets_behind=OffsetsBehind(avg=100.0, max=110, min=90))) is None
    # One of two partitions always has about half of the rows.
    half = OffsetsBehind(avg=500.0, max=600, min=400)
    assert hot_behind(sample(behind=1_000, offsets_behind=half)) is None
    assert hot_behind(sample(behind=0, offsets_behind=OffsetsBehind(avg=0.0, max=0, min=0))) is None
    assert hot_behind(sample()) is None


def fullest(rows: int = 900, name: str = "words-2", partitions: int = 4) -> FullestPartition:
    return FullestPartition(name=name, rows=rows, all_rows=1_000, partitions=partitions)


def test_a_partition_with_most_of_what_comes_in_limits_a_query_without_a_shuffle() -> None:
    hot = query(batches(3, 1_000, 8, fullest=fullest()))
    found = limit(hot)
    assert found is not None
    # One task reads the hot partition, another one all the others.
    assert (found.slots, found.reason) == (2, "autoscale_hot_partition")
    assert found.numbers == {"hot_percent": 90, "hot_partition": "partition words-2"}
    facts = evolve(hot.facts, sources=(SourceFacts(name="topic", divisible=True, ordered=True),))
    assert limit(evolve(hot, facts=facts)) == found
    # Several tasks share the hot partition.
    free = evolve(hot.settings, divide_ordered=True)
    assert limit(evolve(hot, facts=facts, settings=free)) is None
    # All slots share the work after the shuffle.
    assert limit(query(batches(3, 1_000, 8, fullest=fullest(), work=work()))) is None
    assert limit(query(batches(3, 1_000, 8, fullest=fullest()), facts=STATEFUL)) is None


def test_a_partition_that_is_full_by_chance_is_not_hot() -> None:
    def hot(*told: FullestPartition | None) -> Hot | None:
        return hot_input([sample(number, fullest=one) for number, one in enumerate(told)])

    assert hot(fullest(), fullest(), fullest(800)) == Hot(share=0.9, partition="words-2")
    assert hot(fullest(name="words-1"), *[fullest()] * 3) is not None
    assert hot(fullest()) is None
    assert hot(fullest(), fullest(), fullest(name="words-1")) is None
    assert hot(fullest(), fullest(500), fullest()) is None
    assert hot(fullest(), None, fullest()) is None
    assert hot(*[fullest(partitions=2)] * 3) is None


def test_where_memory_is_missing_what_is_there_is_kept() -> None:
    found = limit(query(batches(3, 1_000, 4, work=work(gc_ms=400))))
    assert found is not None
    assert (found.slots, found.reason) == (4, "autoscale_memory")
    assert found.numbers == {"lost_percent": 40, "gc_percent": 40, "spilled_bytes": 0}


def test_beside_a_long_task_as_many_slots_as_the_others_fill_are_of_use() -> None:
    uneven = work(run_ms=4_000, longest_ms=800, median_ms=60)
    found = limit(query(batches(3, 2_000, 2, work=uneven)))
    assert found is not None
    assert (found.slots, found.reason) == (5, "autoscale_skew")
    assert found.numbers == {"longest_ms": 800, "median_ms": 60}
    found = limit(query(batches(3, 5_000, 8, work=uneven)))
    assert found is not None
    assert found.slots == 8, "nothing is given back for it"
