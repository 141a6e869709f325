"""A virtual environment for each version of Spark, with this checkout in it and the jar for that Spark."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from spark_elastic_tools.maven import cache_dir, fetch
from spark_versions import SparkVersion


def environment(checkout: Path, row: SparkVersion) -> Path:
    """Return the Python of the environment, with the jar for its Spark built in this checkout.

    Raises CalledProcessError or FetchError if it cannot be made, or the jar cannot be built.
    """
    python = without_jar(checkout, row)
    subprocess.run([str(python), str(checkout / "jvm-shim" / "build_jar.py")], check=True)
    return python


def without_jar(checkout: Path, row: SparkVersion) -> Path:
    """Return the Python of the environment, recreated if its requirements have changed.

    Raises CalledProcessError or FetchError if it cannot be made.
    """
    spark = f"{row.pyspark}_{row.scala_binary}"
    home = cache_dir() / "environments" / f"{checkout.name}-{_name(checkout)}-{spark}"
    python = home / "bin" / "python"
    stamp = home / "installed"
    wanted = hashlib.sha256((checkout / "pyproject.toml").read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"making an environment with pyspark {row.pyspark}: some minutes, 400 MB to fetch", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        packages = [f"pyspark=={row.pyspark}", "-e", f"{checkout}[cli,demo,dev]"]
        if row.minor.startswith("3."):
            packages.append("pyarrow<20")  # later ones need a NumPy that this Spark does not allow
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
        if not row.on_pypi:
            (jars,) = home.glob("lib/python*/site-packages/pyspark/jars")
            take_jars_for(row, jars)
        stamp.write_text(wanted)
    return python


def take_jars_for(row: SparkVersion, jars: Path) -> None:
    """Replace the jars of a PySpark that are for one Scala by those of Spark SQL for the row's Scala.

    Jars without a Scala version stay; Hive, MLlib and others, which the tests do not use, are removed. Raises
    FetchError.
    """
    fetched = fetch(f"org.apache.spark:spark-sql_{row.scala_binary}:{row.pyspark}", transitive=True)
    for jar in jars.glob("*.jar"):
        if _of_scala(jar):
            jar.unlink()
    for jar in filter(_of_scala, fetched):
        shutil.copy(jar, jars)


def _of_scala(jar: Path) -> bool:
    return re.match(r"scala-|.+_2\.1[23]-", jar.name) is not None


def _name(checkout: Path) -> str:
    return hashlib.sha256(str(checkout).encode()).hexdigest()[:8]
