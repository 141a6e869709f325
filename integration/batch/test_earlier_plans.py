"""Tests of a plan's earlier number when it meets other data."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from integration.batch.plans import advised, decisions, final_plan, written
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.batch.questions import Ranges

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


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
