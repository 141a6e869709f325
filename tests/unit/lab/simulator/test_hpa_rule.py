"""Tests that the stand-in for Kubernetes' autoscaler computes as Kubernetes does."""

from __future__ import annotations

import pytest

from spark_elastic_lab.simulator.rivals.kubernetes import Hpa


def hpa(up_s: float = 0, down_s: float = 0) -> Hpa:
    return Hpa(target=2, least=1, most=10, up_s=up_s, down_s=down_s)


@pytest.mark.parametrize(
    ("current", "value", "wanted"),
    [(1, 4, 2), (2, 5, 3), (4, 3, 2), (1, 100, 10), (3, 0, 1), (10, 21, 10), (10, 18.5, 10), (10, 17, 9)],
)
def test_replicas_are_the_metric_by_what_one_is_for(current: int, value: float, wanted: int) -> None:
    assert hpa().replicas(current, value, 0) == wanted


def test_a_metric_without_a_value_changes_nothing() -> None:
    assert hpa().replicas(4, None, 0) == 4


def test_going_down_takes_the_most_that_was_recommended_in_its_window() -> None:
    slow = Hpa(target=1, least=1, most=20, up_s=0, down_s=9)
    given = [20, 17, 15, 17, 17, 15, 17, 15, 17, 15]
    assert [slow.replicas(20, value, at) for at, value in enumerate(given)] == [20] * 10
    assert slow.replicas(20, 14, 10) == 17


def test_going_up_takes_the_least_that_was_recommended_in_its_window() -> None:
    slow = hpa(up_s=30)
    assert slow.replicas(1, 2, 0) == 1
    assert slow.replicas(1, 8, 15) == 1
    assert slow.replicas(1, 6, 31) == 3
