"""A custom build of Spark, in which members have other names, with a revision of its own."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection
from pathlib import Path

from attrs import evolve

from integration.class_files import TEXT, is_class, parse
from spark_elastic_lab.demo.cluster import spark_home

_VERSION = "spark-version-info.properties"


def another_build(folder: Path, without: Collection[str]) -> Path:
    """Write classes that turn the installed Spark into one, for the front of a class path; return `folder`.

    Members named in `without` have another name there, and all of Spark uses it.
    """
    names = [name.encode() for name in without]
    for module in ("common-utils", "core", "catalyst", "sql"):
        (jar,) = (spark_home() / "jars").glob(f"spark-{module}_*.jar")
        with zipfile.ZipFile(jar) as classes:
            for file in classes.namelist():
                content = classes.read(file)
                changed = _of_another_revision(content) if file == _VERSION else _renamed(content, names)
                if changed != content:
                    (folder / file).parent.mkdir(parents=True, exist_ok=True)
                    (folder / file).write_bytes(changed)
    return folder


def _of_another_revision(properties: bytes) -> bytes:
    changed, found = re.subn(rb"(?m)^revision=.*$", b"revision=somebody else's", properties)
    assert found == 1
    return changed


def _renamed(content: bytes, names: Collection[bytes]) -> bytes:
    """Rename the members of a class file, and the members that it refers to."""
    if not is_class(content) or not any(name in content for name in names):
        return content
    found = parse(content)
    renamed = (_elsewhere(c) if c[0] == TEXT and c[3:] in names else c for c in found.constants)
    return bytes(evolve(found, constants=tuple(renamed)))


def _elsewhere(text: bytes) -> bytes:
    changed = text[3:] + b"Elsewhere"
    return bytes([TEXT]) + len(changed).to_bytes(2, "big") + changed
