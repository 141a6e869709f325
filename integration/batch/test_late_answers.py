"""Tests that a plan has one partitioning although the policy answers late, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.batch.plans import advised, asked
from integration.batch.test_one_plan import HALVES, Halves, collected, new_users, shared, split, users
from integration.streaming.driver import Driver, policies_of
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

QUICKLY = {"spark.elastic.batch.decisionTimeout": "300ms"}
"""A timeout that a test can afford; an answer that is late on a busy machine is another case of the same."""


@pytest.fixture(scope="module")
def elastic(jvm: Driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with advised(jvm, tmp_path_factory.mktemp("journal"), QUICKLY) as spark:
        yield spark


@contextmanager
def suspended(jvm: Driver) -> Iterator[None]:
    """Suspend the policy process during the block."""
    (policy,) = policies_of(jvm.pid)
    policy.suspend()
    try:
        yield
    finally:
        policy.resume()


@pytest.mark.parametrize("halves", HALVES)
@pytest.mark.parametrize("silent", [0, 1])
def test_halves_are_halves_where_an_answer_is_late(
    jvm: Driver, elastic: SparkSession, tmp_path: Path, halves: Halves, silent: int
) -> None:
    folder = new_users(elastic, tmp_path)
    found = []
    for place, part in enumerate(halves(users(elastic, folder))):
        if place == silent:
            with suspended(jvm):
                found.append(collected(part))
        else:
            # After a timeout the driver stops asking until the policy answers again.
            eventually(lambda: asked(elastic), "the policy answers")
            found.append(collected(part))
    assert shared(found) == (0, 0)


def test_what_the_first_action_has_written_before_the_policy_was_there_stays(
    jvm: Driver, elastic: SparkSession, tmp_path: Path
) -> None:
    (policy,) = policies_of(jvm.pid)
    policy.kill()
    policy.wait()
    first, second = split(users(elastic, new_users(elastic, tmp_path)))
    before = collected(first)
    eventually(lambda: asked(elastic), "the next policy decides")
    assert shared([before, collected(second)]) == (0, 0)
