"""Tests that all queries of TPC-DS have the same answers with and without the plugin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from integration.batch.plans import PATIENT, PLAIN, asked, same
from integration.batch.tpcds import generate, queries
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1_800)]

SCALE = 0.01
SMALL = {
    # The queries broadcast more tables at once than the driver of the tests has memory for.
    **PLAIN,
    # So few rows have groups whose sum is 0, by which some queries divide.
    "spark.sql.ansi.enabled": "false",
}


close = partial(same, tolerance=1e-6)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpcds")
    generate(folder, SCALE)
    return folder


def unlimited(text: str) -> str:
    """Return a query without its last limit: which of equal rows come first is left open."""
    return re.sub(r"(?is)\blimit\s+\d+\s*;?\s*$", "", text)


def ordered(rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return rows in an order that the last digits of floating point numbers do not change."""
    return sorted(rows, key=lambda row: [f"{v:.5g}" if isinstance(v, float) else repr(v) for v in row])


def test_all_queries_answer_the_same(jvm: Driver, tables: Path) -> None:
    texts = {name: unlimited(text) for name, text in queries().items()}
    assert len(texts) == 103
    answers: dict[bool, dict[str, list[Any]]] = {}
    for plugin in (False, True):
        conf = {**PLUGIN, **PATIENT} if plugin else {"spark.sql.shuffle.partitions": "4"}
        with jvm.session({**SMALL, **conf}) as spark:
            if plugin:
                eventually(lambda: asked(spark), "a batch stage is decided about")
            for table in tables.glob("*.parquet"):
                spark.read.parquet(str(table)).createOrReplaceTempView(table.stem)
            answers[plugin] = {name: ordered(spark.sql(text).collect()) for name, text in texts.items()}
    assert sum(map(bool, answers[False].values())) > 60
    for name, expected in answers[False].items():
        found = answers[True][name]
        assert len(found) == len(expected), name
        for one, other in zip(found, expected, strict=True):
            assert all(map(close, one, other)), f"{name}: {one} instead of {other}"
