"""Tests of what is said about the stages of batch jobs: the counts are those of the plugin's own rules."""

from __future__ import annotations

from attrs import evolve

from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic_lab.advice.stages import StagesSeen, chosen, stage_report
from tests.unit.lab.advice.facts import stage

MIB = 1 << 20
PLAIN = BatchSettings()


def test_small_partitions_are_too_many() -> None:
    found = stage_report(stage((10_000,) * 200), PLAIN)
    assert found.kinds == ("too_many",)
    assert found.wanted is not None
    assert found.wanted <= 8
    assert found.text == f"200 tasks for 1.9 MiB, {found.wanted} would do"
    # 50 waves of 110 ms; the same work and one or two waves of overhead take 5,000 ms and a little more.
    assert 400 < found.lost_ms < 500


def test_a_single_large_partition_is_too_few() -> None:
    one = stage((2_000 * MIB,), run_ms=40_000, task_ms=40_010, completed=40_010, longest_ms=40_010)
    found = stage_report(one, PLAIN)
    assert found.kinds == ("too_few",)
    assert found.wanted is not None
    assert found.wanted >= 4
    assert 29_000 < found.lost_ms < 31_000


def test_a_number_of_the_user_counts_as_the_settings_say() -> None:
    fixed = BatchSettings(explicit_parallelism="fixed")
    one = stage((10_000,) * 64, conf={"spark.sql.shuffle.partitions": "64"})
    assert chosen(one, fixed) == (None, None)
    partitions, tasks = chosen(one, PLAIN)
    assert partitions is not None
    assert tasks is not None
    assert tasks <= partitions < 64


def test_a_longer_task_and_a_spill_are_said() -> None:
    uneven = evolve(
        stage((64 * MIB,) * 8), longest_ms=9_000, median_ms=100, completed=9_000, spilled_bytes=3 * MIB
    )
    found = stage_report(uneven, PLAIN)
    assert found.kinds == ("spilled", "skewed")
    assert found.text.startswith("3 MiB did not fit into memory and went to disk; the longest task took 9 s")


def test_a_stage_that_fills_its_slots_is_fine() -> None:
    assert stage_report(stage((64 * MIB,) * 4), PLAIN).kinds == ("fine",)


def test_those_that_lost_most_come_first_and_others_are_only_counted() -> None:
    seen = StagesSeen()
    for number, count in enumerate((200, 400, 4)):
        seen.add(evolve(stage((10_000,) * count), stage=number))
    seen.add(evolve(stage(()), tasks=3))
    seen.add(evolve(stage((10_000,) * 200), slots=0))
    assert [one.stage for one in seen.kept] == [1, 0]
    assert (seen.stages, seen.shuffles) == (5, 3)
    assert seen.lost_ms >= sum(one.lost_ms for one in seen.kept)
