"""Tests of the layout of the Maven repository, and of what Maven reads in it."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

import engine
import maven_repository
from maven_repository import About
from spark_versions import SparkVersion, supported
from tests.unit.docs.pages import read

ROW = SparkVersion("4.2.0", "maven", "4.2.0", "2.13.18", 17, "0.10.9.9", ("scala-4.2", "scala-4.2-4.3"))
ABOUT = About(summary="Scaling & more.", licence="Apache-2.0")
NAMESPACE = {"m": "http://maven.apache.org/POM/4.0.0"}
HOME = Path("io/github/spark-elastic/spark-elastic_4.2_2.13/1.2.3")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a repository with a stand-in for the shim of one Spark, and nothing from pip's index."""
    shim = tmp_path / "shim.jar"
    with zipfile.ZipFile(shim, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        archive.writestr("org/", "")
        archive.writestr("org/A.class", "class")
        archive.writestr("__main__.py", "")
    monkeypatch.setattr(maven_repository, "build", lambda row, version: shim)
    monkeypatch.setattr(engine, "download", lambda: [])
    folder = tmp_path / "repository"
    (jar,) = maven_repository.write(folder, [ROW], "1.2.3")
    assert jar == folder / HOME / "spark-elastic_4.2_2.13-1.2.3.jar"
    return folder


def test_it_is_laid_out_as_maven_looks_for_it(written: Path) -> None:
    files = [path for path in written.rglob("*") if path.is_file()]
    assert {path.parent for path in files} == {written / HOME}
    kinds = (".jar", "-sources.jar", "-javadoc.jar", ".pom")
    algorithms = ("md5", "sha1", "sha256", "sha512")
    sums = ("", *(f".{algorithm}" for algorithm in algorithms))
    assert {path.name for path in files} == {
        f"spark-elastic_4.2_2.13-1.2.3{kind}{sum}" for kind in kinds for sum in sums
    }
    for algorithm in algorithms:
        for file in written.rglob(f"*.{algorithm}"):
            assert file.read_text() == hashlib.new(algorithm, file.with_suffix("").read_bytes()).hexdigest()


def test_the_jar_has_the_shim_the_engine_and_the_licences(written: Path) -> None:
    with zipfile.ZipFile(written / HOME / "spark-elastic_4.2_2.13-1.2.3.jar") as jar:
        names = jar.namelist()
        assert jar.read("org/A.class") == b"class"
        assert jar.read("META-INF/LICENSE").decode() == (engine.CHECKOUT / "LICENSE").read_text()
        assert jar.read("META-INF/NOTICE").startswith(b"spark-elastic, under the Apache License 2.0")
        assert {file.date_time for file in jar.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    # Java expects the manifest first, and no name may occur twice.
    assert names[0] == "META-INF/MANIFEST.MF"
    assert len(names) == len(set(names))
    assert {"org/", "__main__.py", "policy-engine/spark_elastic/runtime/__main__.py"} <= set(names)


def test_the_sources_are_those_of_that_spark_and_the_docs_are_pages(written: Path) -> None:
    with zipfile.ZipFile(written / HOME / "spark-elastic_4.2_2.13-1.2.3-sources.jar") as jar:
        names = set(jar.namelist())
    assert {"org/apache/spark/elastic/PolicyProcess.scala", "__main__.py"} <= names
    assert "org/apache/spark/elastic/Installed.java" in names
    assert "org/apache/spark/sql/elastic/StateMove.scala" in names
    assert "org/apache/spark/Scala213.scala" not in names
    with zipfile.ZipFile(written / HOME / "spark-elastic_4.2_2.13-1.2.3-javadoc.jar") as jar:
        assert {"README.md", "docs/settings.md"} <= set(jar.namelist())


def test_a_second_time_it_has_the_same_bytes_and_nothing_of_the_first(written: Path) -> None:
    def read() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in written.rglob("*") if path.is_file()}

    first = read()
    (written / "left-over").touch()
    maven_repository.write(written, [ROW], "1.2.3")
    assert read() == first


def described(about: About) -> ElementTree.Element:
    return ElementTree.fromstring(maven_repository.pom(ROW, "1.2.3", about))


def test_the_description_says_what_is_known_and_makes_up_nothing() -> None:
    project = described(ABOUT)
    said = {element.tag.rpartition("}")[2]: element.text for element in project}
    assert said["groupId"] == maven_repository.group()
    assert (said["artifactId"], said["version"]) == ("spark-elastic_4.2_2.13", "1.2.3")
    assert (said["packaging"], said["description"]) == ("jar", "Scaling & more.")
    assert said["name"] == "spark-elastic for Spark 4.2 with Scala 2.13"
    assert project.findtext("m:licenses/m:license/m:name", None, NAMESPACE) == "Apache License, Version 2.0"
    assert project.find("m:dependencies", NAMESPACE) is None
    assert maven_repository.missing(maven_repository.pom(ROW, "1.2.3", ABOUT)) == ["url", "developers", "scm"]


def test_addresses_and_developers_are_those_of_the_python_package() -> None:
    about = About("Scaling.", "Apache-2.0", source="https://forge.example/us", author="Ada")
    project = described(about)
    assert project.findtext("m:url", None, NAMESPACE) == "https://forge.example/us"
    assert project.findtext("m:scm/m:connection", None, NAMESPACE) == "scm:git:https://forge.example/us.git"
    assert project.findtext("m:developers/m:developer/m:name", None, NAMESPACE) == "Ada"
    assert maven_repository.missing(maven_repository.pom(ROW, "1.2.3", about)) == []


def test_the_package_says_what_a_description_needs() -> None:
    about = About.installed()
    for row in supported():
        said = maven_repository.pom(row, "1", about)
        assert f"<artifactId>{row.artefact}</artifactId>" in said.decode()
        # The package has no address yet, so the description has none either.
        assert set(maven_repository.missing(said)) <= {"url", "scm"}


def test_the_docs_name_the_artefacts_as_they_are() -> None:
    (text,) = (block.text for block in read("docs/getting-started.md").blocks if "--packages" in block.text)
    named = re.findall(r"--packages (\S+):(\S+):VERSION", text)
    assert named == [(maven_repository.group(), supported()[0].artefact)]
