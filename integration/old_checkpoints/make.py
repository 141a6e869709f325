"""Make the archives of checkpoints anew, with real Sparks; they take some minutes each.

usage: python -m integration.old_checkpoints.make [--spark MINOR]... [--store NAME]...

Each Spark has an environment of its own, as in `make test-matrix`. The archives are under version control:
make one anew only if a query has changed or is new.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from integration.matrix.environment import without_jar
from integration.old_checkpoints.archives import FOLDER, Archive
from integration.old_checkpoints.write import STORES
from spark_versions import SparkVersion, supported

CHECKOUT = Path(__file__).parents[2]
WRITERS = ("3.5", "4.0", "4.1", "4.2")


def main() -> None:
    """Make the archives that are chosen, or all."""
    arguments = _arguments()
    FOLDER.mkdir(exist_ok=True)
    for row in supported():
        if row.on_pypi and row.minor in (arguments.spark or WRITERS):
            for store in arguments.store or STORES:
                archive = make(row, store)
                print(f"{archive.file.name}: {archive.file.stat().st_size} bytes", flush=True)


def make(row: SparkVersion, store: str) -> Archive:
    """Make the archive of a Spark and a store. Raises CalledProcessError."""
    python = Path(sys.executable) if row.pyspark == pyspark.__version__ else without_jar(CHECKOUT, row)
    archive = Archive(row.pyspark, store)
    with tempfile.TemporaryDirectory(prefix="archive-") as folder:
        command = [str(python), "-m", "integration.old_checkpoints.write", folder, store, *archive.queries]
        subprocess.run(command, cwd=CHECKOUT, check=True)
        archive.pack(Path(folder))
    return archive


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.old_checkpoints.make", description="Make the archives of checkpoints."
    )
    parser.add_argument("--spark", action="append", choices=WRITERS, help="a minor version (all)")
    parser.add_argument("--store", action="append", choices=STORES, help="a state store (all)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
