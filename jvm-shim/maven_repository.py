"""Write a Maven repository with the jar for every supported Spark, for `spark-submit --packages`.

usage: .venv/bin/python jvm-shim/maven_repository.py [FOLDER]   (dist/maven if none is named)

Each jar carries the policy engine (engine.py), so nothing else has to be installed. As Maven Central
requires, its description, its sources, the documentation and their checksums are beside it. The same sources
result in the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

from attrs import frozen

import engine
from build_jar import CHECKOUT, SOURCES, build, project_version, source_folders
from spark_elastic_tools.java import NoJavaError
from spark_elastic_tools.maven import FetchError
from spark_versions import SparkVersion, supported

# Elements without which Maven Central refuses a description.
WANTED = ("name", "description", "url", "licenses", "developers", "scm")
_LICENCES = {"Apache-2.0": ("Apache License, Version 2.0", "https://www.apache.org/licenses/LICENSE-2.0.txt")}
# Maven Central demands the first two; the last two are the ones to trust.
_CHECKSUMS = ("md5", "sha1", "sha256", "sha512")
_POM = "http://maven.apache.org/POM/4.0.0"
_DATE = (1980, 1, 1, 0, 0, 0)


@frozen
class About:
    """What the metadata of the Python package says; None for a field without a value."""

    summary: str
    licence: str
    source: str | None = None
    author: str | None = None

    @classmethod
    def installed(cls) -> About:
        """Return the metadata of the installed package."""
        said = metadata.metadata("spark-elastic")
        urls = dict(text.split(", ", 1) for text in said.get_all("Project-URL") or [])
        authors = [*(said.get_all("Author") or []), *(said.get_all("Author-email") or [])]
        return cls(
            summary=said["Summary"],
            licence=said["License-Expression"],
            source=urls.get("Source"),
            author=next(iter(authors), None),
        )


def group() -> str:
    """Return the group id of the artefacts, from build.sbt."""
    text = (CHECKOUT / "build.sbt").read_text(encoding="utf-8")
    found = re.search(r'^\s*organization := "(.+)",$', text, re.MULTILINE)
    if found is None:
        raise ValueError('build.sbt has no line organization := "..."')
    return found.group(1)


def write(folder: Path, rows: Iterable[SparkVersion], version: str) -> list[Path]:
    """Write the artefacts for these versions of Spark into a new repository; return its main jars.

    Raises FetchError, NoJavaError or CalledProcessError if something cannot be fetched or built.
    """
    wheels = engine.download()
    carried = {
        "META-INF/LICENSE": (CHECKOUT / "LICENSE").read_bytes(),
        "META-INF/NOTICE": engine.notice(engine.packages(wheels)).encode(),
        **engine.files(wheels),
    }
    shutil.rmtree(folder, ignore_errors=True)
    about = About.installed()
    return [_artefact(folder, row, version, carried, about) for row in rows]


def _artefact(
    folder: Path, row: SparkVersion, version: str, carried: Mapping[str, bytes], about: About
) -> Path:
    name = row.artefact
    home = folder.joinpath(*group().split("."), name, version)
    home.mkdir(parents=True)
    jar = home / f"{name}-{version}.jar"
    with zipfile.ZipFile(build(row, version)) as shim:
        pack(jar, {**{file: shim.read(file) for file in shim.namelist()}, **carried})
    pack(home / f"{name}-{version}-sources.jar", _sources(row))
    pack(home / f"{name}-{version}-javadoc.jar", _documentation())
    (home / f"{name}-{version}.pom").write_bytes(pom(row, version, about))
    for file in sorted(home.iterdir()):
        for algorithm in _CHECKSUMS:
            digest = hashlib.new(algorithm, file.read_bytes()).hexdigest()
            file.with_name(f"{file.name}.{algorithm}").write_text(digest)
    return jar


def pack(jar: Path, files: Mapping[str, bytes]) -> None:
    """Write a jar with these files in their order, all with the same time."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            file = zipfile.ZipInfo(name, date_time=_DATE)
            file.compress_type = zipfile.ZIP_STORED if name.endswith("/") else zipfile.ZIP_DEFLATED
            file.external_attr = (0o40755 << 16 | 0x10) if name.endswith("/") else (0o644 << 16)
            archive.writestr(file, content)


def _sources(row: SparkVersion) -> dict[str, bytes]:
    folders = [SOURCES / name for name in source_folders(row)]
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


def _documentation() -> dict[str, bytes]:
    """Return the pages of docs: the public interface is settings and requests, not classes of the jar."""
    pages = [CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
    return {page.relative_to(CHECKOUT).as_posix(): page.read_bytes() for page in pages}


def pom(row: SparkVersion, version: str, about: About) -> bytes:
    """Return the description of an artefact.

    It has no dependencies: Spark is provided, and the rest is in the jar. Addresses and developers are left
    out if the Python package names none.
    """
    project = ElementTree.Element(
        "project",
        {
            "xmlns": _POM,
            "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
            "xsi:schemaLocation": f"{_POM} https://maven.apache.org/xsd/maven-4.0.0.xsd",
        },
    )
    _add(project, modelVersion="4.0.0", groupId=group(), artifactId=row.artefact, version=version)
    _add(project, packaging="jar", name=f"spark-elastic for Spark {row.minor} with Scala {row.scala_binary}")
    _add(project, description=about.summary)
    if about.source is not None:
        _add(project, url=about.source)
    licence, address = _LICENCES[about.licence]
    licences = ElementTree.SubElement(project, "licenses")
    _add(ElementTree.SubElement(licences, "license"), name=licence, url=address, distribution="repo")
    if about.author is not None:
        developers = ElementTree.SubElement(project, "developers")
        _add(ElementTree.SubElement(developers, "developer"), name=about.author)
    if about.source is not None:
        scm = ElementTree.SubElement(project, "scm")
        _add(scm, connection=f"scm:git:{about.source}.git", url=about.source)
    ElementTree.indent(project)
    text: bytes = ElementTree.tostring(project, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _add(element: ElementTree.Element, **children: str) -> None:
    for name, text in children.items():
        ElementTree.SubElement(element, name).text = text


def missing(description: bytes) -> list[str]:
    """Return the elements that Maven Central requires, and that this description lacks."""
    project = ElementTree.fromstring(description)
    return [name for name in WANTED if project.find(f"{{{_POM}}}{name}") is None]


def main() -> None:
    """Write the repository and print how to use it."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / "dist" / "maven"
    version = project_version()
    jars = write(folder, supported(), version)
    for jar in jars:
        print(f"{group()}:{jar.parent.parent.name}:{version} ({jar.stat().st_size:,} bytes)")
    print(f"spark-submit --repositories {folder.resolve().as_uri()} --packages one of these")
    lacks = missing(jars[0].with_suffix(".pom").read_bytes())
    if lacks:
        where = "SPARK_ELASTIC_REPOSITORY, and authors in pyproject.toml"
        print(f"Maven Central would want more: {', '.join(lacks)} ({where})")


if __name__ == "__main__":
    try:
        main()
    except (FetchError, NoJavaError) as error:
        sys.exit(f"spark-elastic: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"spark-elastic: the shim does not compile (sbt ended with {error.returncode}; see above)")
