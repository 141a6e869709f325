"""Tests that the jars have a class that any Spark can load, and all parts that their Spark does not lack."""

from __future__ import annotations

import re
import zipfile
from typing import NamedTuple

import pytest

from build_jar import CHECKOUT
from integration.class_files import ClassFile, parse
from integration.jar.each_jar import each_spark, jar_for
from spark_elastic.installation import Spark
from spark_elastic.lacks import lacks_of
from spark_elastic.spark_conf import PLUGIN
from spark_versions import SparkVersion

# A jar that is not cached is compiled.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

JAVA_8 = 52
PACKAGES = ("org/apache/spark/elastic/", "org/apache/spark/sql/elastic/")
# It reads Scala's version, using a class that all Scalas have.
ASKS = "org/apache/spark/elastic/Installed.class"
PARTS = CHECKOUT / "jvm-shim/src/main/scala/org/apache/spark/elastic/Part.scala"


def of_scala(found: ClassFile) -> set[str]:
    """Return the classes of Scala that a class file names, including those in descriptors."""
    return {name for text in found.texts for name in re.findall(r"\bscala/[\w/$]+", text)}


class Part(NamedTuple):
    """A part of the shim: the classes through which it is reached, and the parts that it depends on."""

    doors: list[str]
    around: list[str]


def parts() -> dict[str, Part]:
    """Return the parts of the shim by name."""
    pattern = r'val (\w+) = part\("([^"]+)", ([^)]+)\)\(([^)]*)\)'
    found = re.findall(pattern, PARTS.read_text(encoding="utf-8"))
    names = {value: name for value, name, *_ in found}
    return {
        name: Part(re.findall(r'"(\w+)"', doors), [names[value] for value in re.findall(r"\w+", around)])
        for _, name, doors, around in found
    }


@pytest.mark.parametrize("row", each_spark())
def test_any_spark_can_load_the_class_that_it_is_told_to(row: SparkVersion) -> None:
    plugin = PLUGIN.replace(".", "/")
    with zipfile.ZipFile(jar_for(row)) as jar:
        names = [name for name in jar.namelist() if re.fullmatch(rf"{plugin}(\$.+)?\.class", name)]
        files = {name: parse(jar.read(name)) for name in (*names, ASKS)}
    assert f"{plugin}.class" in names
    assert {name: file.version for name, file in files.items()} == dict.fromkeys(files, JAVA_8)
    named = {name: found for name, file in files.items() if (found := of_scala(file))}
    assert named == {ASKS: {"scala/util/Properties"}}


@pytest.mark.parametrize("row", each_spark())
def test_a_jar_is_without_the_parts_that_its_spark_is_said_to_lack(row: SparkVersion) -> None:
    with zipfile.ZipFile(jar_for(row)) as jar:
        there = set(jar.namelist())
    every = parts()
    assert len(every) > 10
    off = {
        name
        for name, part in every.items()
        if not any(f"{package}{door}.class" in there for package in PACKAGES for door in part.doors)
    }
    lacking = {name for name in off if off.isdisjoint(every[name].around)}
    assert lacking == {lack.part for lack in lacks_of(Spark(row.spark)) if lack.part is not None}
