"""Archives of the classes that Spark's processes load: with one, a JVM starts in two thirds of the time.

`make_class_archive.py` makes them. A JVM whose class path, jars or Java are not those of its archive does
without, and says nothing: who has changed the jar only waits longer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "jvm-shim" / "target" / "class-archives"
#: Drivers have the shim's jar first on their class path, nobody else has it.
DRIVERS, OTHERS = FOLDER / "drivers.jsa", FOLDER / "others.jsa"


def environment() -> Mapping[str, str]:
    """Return what lets the JVMs that are started with it use the archive of those that are no drivers."""
    if not OTHERS.exists():
        return {}
    own = os.environ.get("JDK_JAVA_OPTIONS", "")
    quiet = "-Xlog:cds=off -Xlog:cds+dynamic=off"
    return {"JDK_JAVA_OPTIONS": f'{own} {quiet} "-XX:SharedArchiveFile={OTHERS}"'.strip()}


def of_drivers() -> str:
    """Return the option by which a driver's JVM uses the other one."""
    return f"-XX:SharedArchiveFile={DRIVERS}" if DRIVERS.exists() else ""
