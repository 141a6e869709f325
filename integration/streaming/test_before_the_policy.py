"""Tests of the settings that the shim reads itself, before there is a policy process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from integration.streaming.bare_jvm import bare_jvm

pytestmark = pytest.mark.integration

DRIVER, WORKER = "PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with bare_jvm() as started:
        yield started


def conf_of(jvm: Any, settings: Mapping[str, str]) -> Any:
    conf = jvm.org.apache.spark.SparkConf(False)
    for name, value in settings.items():
        conf.set(name, value)
    return conf


@pytest.mark.parametrize(
    ("settings", "environment", "python"),
    [
        ({}, {}, "python3"),
        ({}, {DRIVER: "jupyter", WORKER: "/opt/python3.11"}, "/opt/python3.11"),
        ({}, {DRIVER: "/opt/conda/bin/ipython"}, "python3"),
        ({}, {DRIVER: "/opt/python/notebook.sh", WORKER: "conda.sh"}, "python3"),
        ({}, {DRIVER: "/usr/bin/python", WORKER: "python3.12"}, "/usr/bin/python"),
        ({"spark.pyspark.driver.python": "jupyter", "spark.pyspark.python": "python3.10"}, {}, "python3.10"),
        ({"spark.elastic.python": "./wrapper"}, {DRIVER: "python3"}, "./wrapper"),
    ],
)
def test_what_is_no_python_does_not_run_the_policy(
    jvm: Any, settings: dict[str, str], environment: dict[str, str], python: str
) -> None:
    found = jvm.scala.Predef.Map().empty()
    for name, value in environment.items():
        found = found.updated(name, value)
    assert jvm.org.apache.spark.elastic.Shim.python(conf_of(jvm, settings), found.lift()) == python


@pytest.mark.parametrize(("mode", "off"), [("off", True), (" OFF ", True), ("reactive", False)])
def test_off_is_off_in_any_case_of_its_letters(jvm: Any, mode: str, off: bool) -> None:
    for name in ("spark.elastic.schedulerMode", "spark.elastic.scheduler-mode"):
        assert jvm.org.apache.spark.elastic.Shim.isOff(conf_of(jvm, {name: mode})) == off
