"""TPC-DS for batch tests and the bench: tables made by tpcgen-cli, and the queries of Spark's own tests."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

from integration.commands import output_of
from integration.spark_suites.suite_jars import suite_jars
from spark_elastic_lab.demo.data import DataFailure

# A column's name in the queries, which are older than the tables, and its name in these.
_RENAMED = (re.compile(r"\bc_last_review_date\b"), "c_last_review_date_sk")
_QUERY = re.compile(r"tpcds/(q(\d+)([ab]?))\.sql")


def queries() -> dict[str, str]:
    """Return the SQL of q1 to q99, some in two parts (q14a), from the tests jar of the installed Spark.

    Raises JarFailure.
    """
    with zipfile.ZipFile(suite_jars()[0]) as jar:
        found = [match for match in map(_QUERY.fullmatch, jar.namelist()) if match]
        ordered = sorted(found, key=lambda match: (int(match[2]), match[3]))
        texts = {match[1]: jar.read(match[0]).decode() for match in ordered}
    old, new = _RENAMED
    return {name: old.sub(new, text) for name, text in texts.items()}


def generate(folder: Path, scale: float) -> None:
    """Write all tables at `scale` (1 = 1 GB) as parquet files into `folder`. Raises DataFailure."""
    program = Path(sys.executable).with_name("tpcgen-cli")
    if not program.exists():
        raise DataFailure("tpcgen-cli is not installed")
    command = [str(program), "tpcds", "parquet", "-s", str(scale), "--output-dir", str(folder)]
    output_of(command, DataFailure)
