"""The jars of all supported Sparks, each built when a test needs it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from build_jar import build, installed_row, project_version
from spark_versions import SparkVersion, supported

INSTALLED = installed_row()


def each_spark(without: Collection[SparkVersion] = (), matrix: Collection[SparkVersion] = ()) -> list[Any]:
    """Return the lines of spark-versions.txt as parameters, slow unless the jar for that Spark exists.

    Those in `matrix` are marked so: they run on each version that they are not left out on.
    """
    return [
        pytest.param(
            row,
            id=row.built_for,
            marks=[
                *([] if row == INSTALLED else [pytest.mark.slow]),
                *([pytest.mark.matrix] if row in matrix else []),
            ],
        )
        for row in supported()
        if row not in without
    ]


def jar_for(row: SparkVersion) -> Path:
    """Return a jar, built or taken from the cache of downloads."""
    return build(row, project_version())
