"""Tests of the settings of batch stages: the values of the presets, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.bounds.requirements import Bounds
from tests.unit.core.batch.builder import MIB


def test_a_preset_fills_in_only_what_is_not_set() -> None:
    assert BatchSettings().volume == 64 * MIB
    assert BatchSettings(preset="flink").volume == 16 * MIB
    assert BatchSettings(preset="flink", avg_data_volume_per_task=5).volume == 5
    assert BatchSettings(preset="flink").bounds(2) == Bounds(lower=1, upper=128)
    assert BatchSettings(preset="flink", max_parallelism=9).bounds(2) == Bounds(lower=1, upper=9)


def test_the_size_that_an_application_advises_counts_unless_ours_is_set() -> None:
    assert BatchSettings().with_volume(None) == BatchSettings()
    assert BatchSettings().with_volume(5 << 20).volume == 5 << 20
    assert BatchSettings(preset="flink").with_volume(5 << 20).volume == 5 << 20
    assert BatchSettings().with_volume(5).volume == 1 << 20
    assert BatchSettings().with_volume(5, 3).volume == 5
    assert BatchSettings().with_volume(5, 7).volume == 7
    assert BatchSettings(avg_data_volume_per_task=7).with_volume(5).volume == 7


@pytest.mark.parametrize(("slots", "upper"), [(-1, 128), (0, 128), (1, 128), (10, 1280), (1000, 32_768)])
def test_our_own_upper_bound_goes_by_the_slots(slots: int, upper: int) -> None:
    assert BatchSettings().bounds(slots) == Bounds(lower=1, upper=upper)


def test_a_lower_bound_raises_the_upper_one_that_goes_by_the_slots() -> None:
    assert BatchSettings(min_parallelism=500).bounds(1) == Bounds(lower=500, upper=500)
    assert BatchSettings(min_parallelism=500).bounds(0).lower == 128


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_parallelism": 0},
        {"max_parallelism": 0},
        {"avg_data_volume_per_task": 0},
        {"default_source_parallelism": 0},
        {"preset": "spark"},
        {"min_parallelism": 3, "max_parallelism": 2},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BatchSettings(**wrong)
