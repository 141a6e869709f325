"""Tests of deploy mode cluster: the driver is in a container, with the jar and the policy process."""

from __future__ import annotations

import sys
import tarfile
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest

from integration.jar.alone import bare_python, repository
from integration.streaming.command import spark_elastic
from integration.streaming.waiting import eventually
from integration.yarn.application import application
from integration.yarn.hadoop import Yarn
from spark_elastic.jar import jar_path

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_driver_has_what_comes_with_the_application(yarn: Yarn, tmp_path: Path) -> None:
    environment = tmp_path / "environment.tar.gz"
    pack(environment)
    conf = {
        "spark.submit.deployMode": "cluster",
        "spark.driver.memory": "768m",
        # This node has neither our package nor our jar.
        "spark.driver.extraClassPath": "/nowhere/spark-elastic.jar",
        "spark.jars": str(jar_path()),
        "spark.archives": f"{environment}#environment",
        "spark.elastic.python": "environment/bin/python",
    }
    with application(yarn, tmp_path / "application", conf) as app:
        eventually(partial(app.ran_with, counts=2, spread=2), "both run with two")
        status = spark_elastic(app.url, "status")
        assert (status.returncode, "reactive" in status.stdout) == (0, True), status.stderr
        assert spark_elastic(app.url, "stop", "spread", "--no-wait").returncode == 0
        assert app.process.wait(60) == 0, app.process.log_tail()


def test_the_jar_alone_is_enough(yarn: Yarn, tmp_path: Path) -> None:
    conf = {
        "spark.submit.deployMode": "cluster",
        "spark.driver.memory": "768m",
        "spark.driver.extraClassPath": "/nowhere/spark-elastic.jar",
        "spark.jars": str(repository(tmp_path / "maven")),
        # This node has a Python, but none of our packages.
        "spark.elastic.python": bare_python(tmp_path / "venv"),
    }
    with application(yarn, tmp_path / "application", conf) as app:
        eventually(partial(app.ran_with, counts=2, spread=2), "both run with two")
        assert spark_elastic(app.url, "stop", "spread", "--no-wait").returncode == 0
        assert app.process.wait(60) == 0, app.process.log_tail()


def pack(archive: Path) -> None:
    """Write a stand-in for a packed environment: a Python at its place."""
    python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'.encode()
    entry = tarfile.TarInfo("bin/python")
    entry.size, entry.mode = len(python), 0o755
    with tarfile.open(archive, "w:gz") as file:
        file.addfile(entry, BytesIO(python))
