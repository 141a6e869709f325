"""The class path of Spark's own test suites."""

from __future__ import annotations

import zipfile
from pathlib import Path

from build_jar import NotListedError, installed_row
from spark_elastic.installation import pyspark_home
from spark_elastic_tools.java import NoJavaError
from spark_elastic_tools.maven import FetchError, NotPublishedError, fetch

REPOSITORY = Path(__file__).resolve().parents[2]

# Spark publishes its test classes, but not their dependencies, so those are named here.
_WITH_TESTS = ("spark-sql", "spark-catalyst", "spark-core", "spark-common-utils", "spark-tags")
_COMPANIONS = (
    "org.scalatest:scalatest_{scala}:3.2.19",
    "org.scalatestplus:scalacheck-1-18_{scala}:3.2.19.0",
    "org.scalatestplus:mockito-5-12_{scala}:3.2.19.0",
)
_COMPANIONS_OF_SPARK_3 = (
    "org.scalatest:scalatest_{scala}:3.2.16",
    "org.scalatestplus:scalacheck-1-17_{scala}:3.2.16.0",
    "org.scalatestplus:mockito-4-11_{scala}:3.2.16.0",
)


class JarFailure(Exception):
    """A jar that the suites need could not be fetched; the text names it."""


def pyspark_jars() -> Path:
    """Return the folder of jars of the installed pyspark. Raises JarFailure if there is none."""
    home = pyspark_home()
    if home is None:
        raise JarFailure("pyspark is not installed beside this Python")
    return home / "jars"


def suites_version() -> tuple[str, str]:
    """Return the Spark and Scala versions of the suites.

    Not every release on PyPI is on Maven Central. So these are the suites of the release of the same minor
    version that the shim is compiled against. Raises JarFailure if the installed Spark is not supported.
    """
    try:
        row = installed_row()
    except NotListedError as error:
        raise JarFailure(str(error)) from error
    return row.spark, row.scala_binary


def published() -> bool:
    """Return whether Spark has published its suites. Raises JarFailure if Maven Central does not answer."""
    try:
        fetch(_suites("spark-sql"), transitive=False)
    except NotPublishedError:
        return False
    except (FetchError, NoJavaError) as error:
        raise JarFailure(str(error)) from error
    return True


def suite_jars() -> list[Path]:
    """Return the jars of the suites, theirs first, and of their dependencies that pyspark does not have."""
    spark, scala = suites_version()
    suites = map(_suites, _WITH_TESTS)
    jars = sorted(_fetch(*suites, transitive=False), key=lambda jar: "spark-sql_" not in jar.name)
    companions = _COMPANIONS_OF_SPARK_3 if spark.startswith("3.") else _COMPANIONS
    return [*jars, *_fetch(*(name.format(scala=scala) for name in companions), transitive=True)]


def has_suite(suite: str) -> bool:
    """Return whether this Spark has a suite with this full class name: some are newer than others."""
    with zipfile.ZipFile(suite_jars()[0]) as jar:
        return f"{suite.replace('.', '/')}.class" in jar.namelist()


def _suites(module: str) -> str:
    spark, scala = suites_version()
    return f"org.apache.spark:{module}_{scala}:{spark}:tests"


def _fetch(*coordinates: str, transitive: bool) -> list[Path]:
    try:
        return fetch(*coordinates, transitive=transitive)
    except (FetchError, NoJavaError) as error:
        raise JarFailure(str(error)) from error
