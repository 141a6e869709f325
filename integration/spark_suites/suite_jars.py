"""The class path of Spark's own test suites."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from spark_elastic.maven.artifacts import FetchError, fetch
from spark_elastic.maven.jdk import NoJavaError

REPOSITORY = Path(__file__).resolve().parents[2]

# Spark publishes what its tests are made of, but not what they depend on: those are named here.
_WITH_TESTS = ("spark-sql", "spark-catalyst", "spark-core", "spark-common-utils", "spark-tags")
_COMPANIONS = (
    "org.scalatest:scalatest_{scala}:3.2.19",
    "org.scalatestplus:scalacheck-1-18_{scala}:3.2.19.0",
    "org.scalatestplus:mockito-5-12_{scala}:3.2.19.0",
)


class JarFailure(Exception):
    """A jar that the suites need could not be had; the text says which."""


def pyspark_jars() -> Path:
    """Return the folder of jars of the installed pyspark; raises JarFailure if there is none."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarFailure("pyspark is not installed beside this Python")
    return Path(spec.origin).parent / "jars"


def spark_version() -> tuple[str, str]:
    """Return the versions of Spark and of Scala (first two numbers) of the installed pyspark."""
    core = next(pyspark_jars().glob("spark-core_*.jar"), None)
    if core is None:
        raise JarFailure(f"there is no spark-core jar in {pyspark_jars()}")
    scala, spark = core.stem.removeprefix("spark-core_").split("-", 1)
    return spark, scala


def suite_jars() -> list[Path]:
    """Return the jars with the suites and what they need beyond pyspark's own, the suites' own jar first."""
    spark, scala = spark_version()
    suites = [f"org.apache.spark:{name}_{scala}:{spark}:tests" for name in _WITH_TESTS]
    jars = sorted(_fetch(*suites, transitive=False), key=lambda jar: "spark-sql_" not in jar.name)
    return [*jars, *_fetch(*(name.format(scala=scala) for name in _COMPANIONS), transitive=True)]


def _fetch(*coordinates: str, transitive: bool) -> list[Path]:
    try:
        return fetch(*coordinates, transitive=transitive)
    except (FetchError, NoJavaError) as error:
        raise JarFailure(str(error)) from error
