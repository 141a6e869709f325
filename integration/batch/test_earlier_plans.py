"""Tests of a plan's earlier number when it meets other data, or when the policy could not answer before."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from integration.batch.plans import advised, asked, decisions, final_plan, written
from integration.batch.test_one_plan import QUICKLY, USERS, collected, shared, split, users
from integration.streaming.driver import Driver, policies_of
from integration.streaming.waiting import eventually
from spark_elastic.core.batch.questions import Ranges

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_what_the_first_action_has_written_before_the_policy_was_there_stays(
    jvm: Driver, tmp_path: Path
) -> None:
    folder = str(tmp_path / "users")
    with advised(jvm, tmp_path / "journal", QUICKLY) as spark:
        spark.range(0, USERS, 1, 4).select(F.col("id").alias("user")).write.parquet(folder)
        (policy,) = policies_of(jvm.pid)
        policy.kill()
        policy.wait()
        first, second = split(users(spark, folder))
        before = collected(first)
        eventually(lambda: asked(spark), "the next policy decides")
        assert shared([before, collected(second)]) == (0, 0)


def test_a_million_rows_after_five_times_nearly_none_have_work_for_every_slot(
    jvm: Driver, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    folder = str(tmp_path / "rows")
    with advised(jvm, journal, {"spark.master": "local[8]"}) as spark:

        def run(number: int) -> DataFrame:
            spark.range(0, number, 1, 2).select(F.xxhash64("id").alias("h")).write.mode("overwrite").parquet(
                folder
            )
            groups = spark.read.schema("h long").parquet(folder).groupBy("h").count()
            result = groups.where("count != 1")
            assert result.collect() == []
            return result

        for _ in range(5):
            run(3)
        result = run(1_000_000)
        assert min(written(final_plan(result))) >= 16

        def read() -> list[int]:
            answered = [(e.question, e.answer["record"]) for e in decisions(journal)]
            large = [
                found
                for q, found in answered
                if isinstance(q, Ranges) and sum(q.exchanges[0].bytes) > 5_000_000
            ]
            return [found["after"] for found in large]

        assert min(eventually(read, "the journal has the large one")) >= 8
