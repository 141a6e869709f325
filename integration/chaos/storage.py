"""A place for checkpoints that can be made unreachable, for driver and executors: see AwayStorage.java."""

from __future__ import annotations

import os
from pathlib import Path

from integration.jdk_tools import compile_java
from spark_elastic.jar import jar_path

_SOURCE = Path(__file__).parents[1] / "streaming" / "AwayStorage.java"
_SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class Storage:
    """The storage of one application under `folder`."""

    def __init__(self, folder: Path) -> None:
        self._classes = folder / "classes"
        self._folder = folder / "storage"
        self._away = folder / "away"
        self._classes.mkdir(parents=True)
        self._folder.mkdir()
        compile_java(_SOURCE, self._classes)

    def conf(self) -> dict[str, str]:
        """Return what driver and executors need to know it."""
        options = f"{_SMALL_JVM} -Daway={self._away}"
        return {
            "spark.hadoop.fs.away.impl": "AwayStorage",
            "spark.driver.extraClassPath": os.pathsep.join(map(str, (jar_path(), self._classes))),
            "spark.driver.extraJavaOptions": options,
            "spark.executor.extraClassPath": str(self._classes),
            "spark.executor.extraJavaOptions": options,
        }

    def place(self, name: str) -> str:
        """Return the URI of a folder in it."""
        return f"away://{self._folder / name}"

    def folder(self, name: str) -> Path:
        """Return where that is on this machine."""
        return self._folder / name

    def take_away(self) -> None:
        """Make it unreachable."""
        self._away.touch()

    def bring_back(self) -> None:
        """Make it reachable; nothing happens if it is."""
        self._away.unlink(missing_ok=True)
