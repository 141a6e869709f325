"""Tests that native engines (Comet, RAPIDS, Gluten) find in a plan what they look for, in its usual place.

A stand-in has rules that match as theirs do. None of them is published for this Spark; `test_comet.py` runs
Comet itself on other versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from integration.batch.plans import advised, final_plan, rows, written
from integration.jdk_tools import compile_java
from integration.streaming.driver import Driver, driver

pytestmark = [pytest.mark.integration, pytest.mark.matrix, pytest.mark.timeout(300)]


@pytest.fixture
def jvm(tmp_path: Path) -> Iterator[Driver]:
    """Start a JVM with the stand-in on its class path."""
    compile_java(Path(__file__).parent / "NativeEngine.java", tmp_path / "classes")
    with driver(tmp_path / "driver", [tmp_path / "classes"]) as started:
        yield started


def test_exchanges_have_their_numbers_before_an_engine_takes_them_over(jvm: Driver, tmp_path: Path) -> None:
    with advised(jvm, tmp_path / "journal", {"spark.sql.extensions": "NativeEngine"}) as spark:
        jvm.jvm.NativeEngine.NUMBERS.clear()
        totals = spark.range(0, 2_000, 1, 3).groupBy((F.col("id") % 50).alias("k")).agg(F.sum("id"))
        assert len(rows(totals)) == 50
        assert list(jvm.jvm.NativeEngine.NUMBERS) == written(final_plan(totals))


def test_reads_that_were_decided_are_sparks_own(jvm: Driver, tmp_path: Path) -> None:
    with advised(jvm, tmp_path / "journal", {"spark.sql.extensions": "NativeEngine"}) as spark:
        before = jvm.jvm.NativeEngine.READS
        totals = spark.range(0, 2_000, 1, 3).groupBy((F.col("id") % 50).alias("k")).agg(F.sum("id"))
        assert len(rows(totals)) == 50
        assert "AQEShuffleRead coalesced" in final_plan(totals)
        assert before < jvm.jvm.NativeEngine.READS
        assert jvm.jvm.NativeEngine.HIDDEN == 0
