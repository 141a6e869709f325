"""Build the shim's jar and put it into the Python package.

usage: .venv/bin/python jvm-shim/build_jar.py [--all | --spark NAME]

`make jar` builds the jar for the Spark installed beside this Python, `make jars` those for all supported
versions, `make wheel SPARK=4.2` that for one. A jar with unchanged sources is not built again. If another
checkout has built it from the same sources, it is taken from the download cache.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from pyspark_jars import jars_of_pyspark
from sbt import run_sbt
from spark_elastic.installation import installed_pyspark
from spark_elastic_tools.java import NoJavaError
from spark_elastic_tools.maven import FetchError, locked
from spark_versions import SparkVersion, UnknownSparkError, named, supported

CHECKOUT = Path(__file__).parent.parent
JARS = CHECKOUT / "python" / "spark_elastic" / "jars"
SOURCES = CHECKOUT / "jvm-shim" / "src" / "main"
# Number of builds of each jar that are kept in the cache, 2 MB each.
KEPT = 8


class NotListedError(LookupError):
    """The installed Spark is not in spark-versions.txt; the message names it."""


def project_version() -> str:
    """Return the single version number, from the Python package."""
    text = (CHECKOUT / "python" / "spark_elastic" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise ValueError('python/spark_elastic/version.py has no line __version__ = "..."')
    return found.group(1)


def source_folders(row: SparkVersion) -> tuple[str, ...]:
    """Return the source folders of the jar for this Spark."""
    return ("java", "resources", "scala", *row.sources)


def fingerprint(row: SparkVersion, version: str) -> str:
    """Return a hash of everything that the jar for this Spark is made from."""
    digest = hashlib.sha256(f"{row} {version}\n".encode())
    build = [CHECKOUT / "build.sbt", *(CHECKOUT / "project").glob("*.*")]
    sources = [path for name in source_folders(row) for path in (SOURCES / name).rglob("*")]
    for file in sorted(path for path in [*build, *sources] if path.is_file()):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(CHECKOUT)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def installed_row() -> SparkVersion:
    """Return the row of the PySpark beside this Python. Raises NotListedError if the list has none for it."""
    spark = installed_pyspark()
    for row in supported():
        if spark is not None and (spark.minor, spark.scala) == (row.minor, row.scala_binary):
            return row
    raise NotListedError(f"the installed PySpark ({spark or 'none'}) is not in spark-versions.txt")


def build(row: SparkVersion, version: str) -> Path:
    """Return the jar for one Spark version, and compile it if its sources have changed."""
    jar = JARS / row.jar_name(version)
    stamp = _built(jar, row).with_suffix(".sha256")
    current = fingerprint(row, version)
    if jar.is_file() and stamp.is_file() and stamp.read_text() == current:
        return jar
    JARS.mkdir(exist_ok=True)
    # Written beside the jar and renamed, so that a running application never maps half a jar.
    part = jar.with_suffix(".part")
    with locked(f"jar-{row.built_for}") as cache:
        kept = cache / "jars" / jar.stem / f"{current}.jar"
        if kept.is_file():
            shutil.copyfile(kept, part)
            print(f"took {jar.name} from {kept.parent}: its sources are the same", flush=True)
        else:
            _compile(row, jar, part)
            _keep(part, kept)
    part.rename(jar)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(current)
    return jar


def _built(jar: Path, row: SparkVersion) -> Path:
    """Return where sbt writes this jar."""
    return CHECKOUT / "jvm-shim" / "target" / f"spark-{row.built_for}" / jar.name


def _compile(row: SparkVersion, jar: Path, to: Path) -> None:
    print(
        f"compiling the shim for Spark {row.spark} with Scala {row.scala}: about a minute on two idle cores; "
        "the first time the compiler and Spark's jars are fetched before (300 MB)",
        flush=True,
    )
    begin = time.monotonic()
    folder = {"spark.jars": str(jars_of_pyspark(row.pyspark))} if row.jars == "pyspark" else {}
    run_sbt(CHECKOUT, {"spark": row.built_for, **folder}, "jvm-shim/package")
    _store(_built(jar, row), to)
    print(f"built {jar.name} in {time.monotonic() - begin:.0f} s", flush=True)


def _keep(jar: Path, as_file: Path) -> None:
    """Copy a jar into the cache, and remove the oldest ones beyond KEPT."""
    as_file.parent.mkdir(parents=True, exist_ok=True)
    part = as_file.with_suffix(".part")
    shutil.copyfile(jar, part)
    part.rename(as_file)
    others = sorted(as_file.parent.glob("*.jar"), key=lambda file: file.stat().st_mtime, reverse=True)
    for old in others[KEPT:]:
        old.unlink()


def _store(jar: Path, to: Path) -> None:
    """Copy a jar uncompressed, because the wheel compresses all jars together better than each on its own.

    All files get the same time, so that the same sources result in the same bytes.
    """
    with zipfile.ZipFile(jar) as compressed, zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as stored:
        for file in compressed.infolist():
            plain = zipfile.ZipInfo(file.filename, date_time=(1980, 1, 1, 0, 0, 0))
            plain.external_attr = file.external_attr
            stored.writestr(plain, compressed.read(file))


def main() -> None:
    """Build the requested jars, and remove jars that are no longer built."""
    parser = argparse.ArgumentParser(prog="build_jar.py")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="for all supported versions")
    which.add_argument("--spark", help="for this Spark, such as 4.2 or 3.5_2.13")
    arguments = parser.parse_args()
    version = project_version()
    one = named(arguments.spark) if arguments.spark else None
    for row in supported() if arguments.all else (one or installed_row(),):
        build(row, version)
    known = {row.jar_name(version) for row in supported()}
    for jar in JARS.glob("*.jar"):
        if jar.name not in known:
            jar.unlink()


if __name__ == "__main__":
    try:
        main()
    except (FetchError, NoJavaError, NotListedError, UnknownSparkError) as error:
        sys.exit(f"spark-elastic: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"spark-elastic: the shim does not compile (sbt ended with {error.returncode}; see above)")
