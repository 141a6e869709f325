"""A build of Spark as somebody else may have it: members have other names, and it its own revision."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection
from pathlib import Path

from spark_elastic.demo.cluster import spark_home

_VERSION = "spark-version-info.properties"
# How many bytes follow the tag of a constant in a class file; a text (1) says that itself.
_SIZES = {
    **{3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4},
    **{15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2},
}


def another_build(folder: Path, without: Collection[str]) -> Path:
    """Write what makes the installed Spark one, to stand before its jars on a class path; returns `folder`.

    Members of the names in `without` have another name there, and all of Spark knows it.
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
    """Give the members of a class file, and those that it mentions, other names."""
    if not content.startswith(b"\xca\xfe\xba\xbe") or not any(name in content for name in names):
        return content
    parts = [content[:10]]
    at, index, end = 10, 1, int.from_bytes(content[8:10], "big")
    while index < end:
        tag = content[at]
        size = 2 + int.from_bytes(content[at + 1 : at + 3], "big") if tag == 1 else _SIZES[tag]
        constant = content[at : at + 1 + size]
        if tag == 1 and constant[3:] in names:
            text = constant[3:] + b"Elsewhere"
            constant = bytes([tag]) + len(text).to_bytes(2, "big") + text
        parts.append(constant)
        at += 1 + size
        index += 2 if tag in (5, 6) else 1  # long and double count twice
    return b"".join([*parts, content[at:]])
