"""The prerequisites of the demonstration on this machine, and how to install those that are missing."""

from __future__ import annotations

import importlib.util
from importlib import metadata

from spark_elastic.jar import JarNotFoundError, jar_path
from spark_elastic_lab.demo.data import generator
from spark_elastic_tools.java import NoJavaError, java_for
from spark_elastic_tools.live import brief
from spark_elastic_tools.maven import FetchError


def problems() -> list[str]:
    """Return one line for each missing prerequisite, with what to do; empty if nothing is missing."""
    found = [_java(), _pyspark(), _generator(), _jar()]
    return [problem for problem in found if problem is not None]


def fetch_problem(error: FetchError) -> str:
    """Describe in one line which jar is missing, and what to do."""
    what = brief(str(error))
    advice = "name its jar with --token-provider" if "token-provider" in what else "look at the network"
    return f"{what}: {advice}"


def _java() -> str | None:
    try:
        java_for(_spark())
    except NoJavaError as error:
        return str(error)
    return None


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
