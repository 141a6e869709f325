"""Read spark-versions.txt, the only list of supported Spark versions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

FILE = Path(__file__).parent.parent / "spark-versions.txt"


class UnknownSparkError(LookupError):
    """No line of the list has this name; the message says which there are."""


@dataclass(frozen=True)
class SparkVersion:
    """One line of the list; the columns are explained at its top."""

    spark: str
    jars: str
    pyspark: str
    scala: str
    java: int
    py4j: str
    sources: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def minor(self) -> str:
        """The major and minor version of Spark: one jar per Scala version serves all its releases."""
        return minor(self.spark)

    @property
    def scala_binary(self) -> str:
        """The major and minor version of Scala."""
        return minor(self.scala)

    @property
    def built_for(self) -> str:
        """Spark and Scala as in the jar's name, such as "4.2_2.13", which differs for each line."""
        return f"{self.minor}_{self.scala_binary}"

    @property
    def on_pypi(self) -> bool:
        """Whether PySpark as pip installs it is for this Scala; that of Spark 3 is for 2.12 only."""
        return self.scala_binary == ("2.12" if self.spark.startswith("3.") else "2.13")

    @property
    def name(self) -> str:
        """The name that selects the version in the tests: a minor version alone means PySpark from pip."""
        return self.minor if self.on_pypi else self.built_for

    @property
    def artefact(self) -> str:
        """The name of the shim for this Spark, without its version."""
        return f"spark-elastic_{self.built_for}"

    def with_others(self) -> tuple[SparkVersion, ...]:
        """Return the same for each other release of PySpark that it is tested with."""
        return tuple(replace(self, pyspark=release, others=()) for release in self.others)

    def jar_name(self, project_version: str) -> str:
        """Return the file name of the shim's jar for this Spark."""
        return f"{self.artefact}-{project_version}.jar"


def minor(version: str) -> str:
    """Return the major and minor part of a version."""
    return ".".join(version.split(".")[:2])


def supported(file: Path = FILE) -> tuple[SparkVersion, ...]:
    """Return every supported version, the default one first."""
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return tuple(_parse(line) for line in lines if line and not line.startswith("#"))


def named(name: str) -> SparkVersion:
    """Return the version with a name, or of a release such as 4.2.0. Raises UnknownSparkError."""
    for row in supported():
        if name in (row.name, row.built_for) or (
            row.on_pypi and minor(name) == row.minor and "_" not in name
        ):
            return row
    names = ", ".join(row.name for row in supported())
    raise UnknownSparkError(f"no jar is made for Spark {name}, only for {names}: type make wheel SPARK=4.2")


def _parse(line: str) -> SparkVersion:
    spark, jars, pyspark, scala, java, py4j, sources = line.split()
    installed, *others = pyspark.split(",")
    folders = () if sources == "-" else tuple(sources.split(","))
    return SparkVersion(spark, jars, installed, scala, int(java), py4j, folders, tuple(others))
