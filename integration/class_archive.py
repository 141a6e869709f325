"""Archives of the classes that Spark's processes load: with one, a JVM starts in two thirds of the time.

`make_class_archive.py` makes them. A JVM whose class path, jars or Java differ from those of its archive
starts without it, and logs nothing: after a change of the jar, starts are only slower.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "jvm-shim" / "target" / "class-archives"
# Only drivers have the shim's jar first on their class path.
DRIVERS, OTHERS = FOLDER / "drivers.jsa", FOLDER / "others.jsa"


def environment() -> Mapping[str, str]:
    """Return the environment in which JVMs other than drivers use their archive."""
    if not OTHERS.exists():
        return {}
    own = os.environ.get("JDK_JAVA_OPTIONS", "")
    quiet = "-Xlog:cds=off -Xlog:cds+dynamic=off"
    return {"JDK_JAVA_OPTIONS": f'{own} {quiet} "-XX:SharedArchiveFile={OTHERS}"'.strip()}


def of_drivers() -> str:
    """Return the option with which a driver's JVM uses the drivers' archive."""
    return f"-XX:SharedArchiveFile={DRIVERS}" if DRIVERS.exists() else ""
