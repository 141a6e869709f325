"""The prerequisites of the demonstration on this machine, and how to install those that are missing."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from importlib import metadata

from spark_elastic.jar import JarNotFoundError, jar_path
from spark_elastic_lab.demo.data import generator
from spark_elastic_tools.live import brief
from spark_elastic_tools.maven import FetchError

_JAVA_ADVICE = "install a JRE or JDK 17 (Debian: apt-get install openjdk-17-jre-headless)"


def problems() -> list[str]:
    """Return one line for each missing prerequisite, with what to do; empty if nothing is missing."""
    found = [_java(), _pyspark(), _generator(), _jar()]
    return [problem for problem in found if problem is not None]


def fetch_problem(error: FetchError) -> str:
    """Describe in one line which jar is missing, and what to do."""
    what = brief(str(error))
    advice = "name its jar with --token-provider" if "token-provider" in what else "look at the network"
    return f"{what}: {advice}"


def java_version(banner: str) -> int | None:
    """Return the major version in the output of `java -version`, or None if there is none."""
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(found[1]) if found else None


def oldest_java(spark: str | None) -> int:
    """Return the oldest Java that a Spark version documents; for None, that of the newest Spark."""
    return 8 if spark is not None and spark.startswith("3.") else 17


def java_problem(program: str | None, banner: str, oldest: int) -> str | None:
    """Describe the problem with the Java at `program` that prints `banner`; return None if there is none."""
    if program is None:
        return f"no Java found: {_JAVA_ADVICE}, or set JAVA_HOME"
    version = java_version(banner)
    if version is None or version < oldest:
        what = "does not run" if version is None else f"is Java {version}"
        return f"{program} {what}, Spark needs Java {oldest} or newer: {_JAVA_ADVICE}, then set JAVA_HOME"
    return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    # As in Spark itself, JAVA_HOME takes precedence, even if its path does not exist.
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    oldest = oldest_java(_spark())
    if program is None:
        return java_problem(None, "", oldest)
    try:
        banner = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        banner = ""
    return java_problem(program, banner, oldest)


def _spark() -> str | None:
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None


def _pyspark() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install pyspark"
    return None


def _generator() -> str | None:
    if generator() is None:
        return "tpchgen-cli, which makes the input, is not installed: pip install 'spark-elastic[demo]'"
    return None


def _jar() -> str | None:
    try:
        jar_path()
    except JarNotFoundError as error:
        return str(error)
    return None
