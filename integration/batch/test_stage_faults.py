"""Tests that without a usable answer Spark's own rules decide, and that no query waits for long."""

from __future__ import annotations

import sys
import time
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import PATIENT, PLAIN, advised, asked, final_plan, rows, written
from integration.streaming.driver import PLUGIN, Driver, policies_of
from integration.streaming.stand_ins import held_by, program
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

STRANGE = Path(__file__).with_name("strange_policy.py")
NO_ADVICE = "Spark's own rule decides about a batch stage: "


def counts(spark: SparkSession) -> DataFrame:
    return spark.range(5_000).groupBy((F.col("id") % 10).alias("k")).count()


def said(jvm: Driver) -> list[str]:
    return [line for line in jvm.said() if NO_ADVICE in line]


def test_a_killed_policy_leaves_the_numbers_to_spark_and_the_next_one_decides_again(
    jvm: Driver, tmp_path: Path
) -> None:
    held = tmp_path / "held"
    with advised(jvm, tmp_path / "journal", {"spark.elastic.python": held_by(held)}) as spark:
        (running,) = policies_of(jvm.pid)
        held.touch()  # The replacement does not start before this file is gone.
        running.kill()
        running.wait()
        result = counts(spark)
        assert [row["count"] for row in rows(result)] == [500] * 10
        assert written(final_plan(result)) == [200]
        held.unlink()
        eventually(lambda: asked(spark), "the new policy decides")


def test_a_plan_asks_once_about_all_of_its_shuffles(jvm: Driver, tmp_path: Path) -> None:
    notes, many = tmp_path / "notes", 12
    policy = program(tmp_path / "policy", [sys.executable, str(STRANGE), str(notes)])
    # Otherwise the shuffles below a union must keep the same partitions, and form one group.
    apart = {"spark.sql.unionOutputPartitioning": "false"}
    conf = {**PLUGIN, **PLAIN, **PATIENT, **apart, "spark.elastic.python": policy}
    with jvm.session(conf) as spark:
        eventually(lambda: asked(spark) and notes.exists(), "the policy answers")
        parts = [spark.range(1_000).groupBy((F.col("id") % n).alias("k")).count() for n in range(2, 2 + many)]
        result = reduce(DataFrame.union, parts)
        before = len(notes.read_text().splitlines())
        assert len(rows(result)) == sum(range(2, 2 + many))
        lines = [line.split() for line in notes.read_text().splitlines()[before:]]
        # The questions that warm the policy up are about all kinds.
        asked_about = [words for words in lines if len(words) == 2]
    for kind in ("InitialCount", "Ranges"):
        assert [int(count) for count, of in asked_about if of == kind] == [many]


@pytest.mark.parametrize(
    ("how", "patience", "why"),
    [("60", "300ms", "no answer within 300 ms"), ("nonsense", "20s", "the answer makes no sense")],
)
def test_an_answer_that_is_late_or_makes_no_sense_is_none(
    jvm: Driver, tmp_path: Path, how: str, patience: str, why: str
) -> None:
    before = len(said(jvm))
    policy = program(tmp_path / "policy", [sys.executable, str(STRANGE), how])
    conf = {"spark.elastic.python": policy, "spark.elastic.batch.decisionTimeout": patience}
    with jvm.session({**PLUGIN, **PLAIN, **conf}) as spark:

        def complained() -> bool:
            began = time.monotonic()
            result = counts(spark)
            assert [row["count"] for row in rows(result)] == [500] * 10
            assert written(final_plan(result)) == [200]
            assert time.monotonic() - began < 30
            return len(said(jvm)) > before

        eventually(complained, "the log says that there is no answer")
        assert complained()
        assert [why in line for line in said(jvm)[before:]] == [True]
