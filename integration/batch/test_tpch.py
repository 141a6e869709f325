"""Tests that all queries of TPC-H have the same answers with and without the plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from integration.batch.plans import PATIENT, asked, same
from integration.batch.tpch import generate, queries, register
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

SCALE = 0.05


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    generate(folder, SCALE)
    return folder


@pytest.mark.parametrize("broadcast", ["10m", "-1"])
def test_all_queries_answer_the_same(jvm: Driver, tables: Path, tmp_path: Path, broadcast: str) -> None:
    answers: dict[bool, dict[str, list[Any]]] = {}
    for plugin in (False, True):
        conf = {"spark.sql.autoBroadcastJoinThreshold": broadcast}
        if plugin:
            conf |= {**PLUGIN, **PATIENT}
        else:
            conf |= {"spark.sql.shuffle.partitions": "8"}
        with jvm.session(conf) as spark:
            if plugin:
                eventually(lambda: asked(spark), "a batch stage is decided about")
            register(spark, tables)
            answers[plugin] = {name: spark.sql(text).collect() for name, text in queries().items()}
    assert len(answers[True]) == 22
    for name, expected in answers[False].items():
        found = answers[True][name]
        assert len(found) == len(expected), name
        for one, other in zip(found, expected, strict=True):
            assert all(map(same, one, other)), f"{name}: {one} instead of {other}"
