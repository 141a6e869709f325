"""Tests of the resources of a task, according to Spark's own settings."""

from __future__ import annotations

import pytest

from spark_elastic.core.cluster.slots import TaskSize


def gpus(executor: str, task: str, kind: str = "gpu") -> dict[str, str]:
    return {
        f"spark.executor.resource.{kind}.amount": executor,
        f"spark.task.resource.{kind}.amount": task,
        f"spark.executor.resource.{kind}.vendor": "example.com",
    }


@pytest.mark.parametrize(
    ("conf", "slots"),
    [
        ({}, 8),
        ({"spark.task.cpus": "3"}, 2),
        ({"spark.task.cpus": "0.1"}, 80),
        ({"spark.task.cpus": "1.5"}, 5),
        (gpus("1", "1"), 1),
        (gpus("2", "1"), 2),
        (gpus("4", "2"), 2),
        (gpus("1", "0.25"), 4),
        # Three tasks share one GPU; a task never uses parts of two.
        (gpus("2", "0.3"), 6),
        (gpus("2", "0.7"), 2),
        (gpus("1", "0.01"), 8),
        (gpus("4", "1") | gpus("1", "0.5", "fpga"), 2),
        (gpus("2", "1") | {"spark.task.cpus": "5"}, 1),
        # Executors may have resources that no task needs.
        ({"spark.executor.resource.gpu.amount": "1"}, 8),
        (gpus("1", "0"), 8),
        # Spark refuses this when it starts.
        ({"spark.task.resource.gpu.amount": "1"}, 0),
    ],
)
def test_slots_of_an_executor_with_eight_cores(conf: dict[str, str], slots: int) -> None:
    assert TaskSize.of(conf).slots(8) == slots


@pytest.mark.parametrize("wrong", [{"cpus": 0}, {"most": -1}])
def test_a_task_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be >"):
        TaskSize(**wrong)
