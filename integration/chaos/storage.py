"""A storage for checkpoints that can be made unreachable, slow or unreliable, for driver and executors.

See AwayStorage.java.
"""

from __future__ import annotations

import os
from pathlib import Path

from integration.jdk_tools import compile_java
from spark_elastic.jar import jar_path
from spark_elastic_lab.demo.cluster import SMALL_JVM

_SOURCE = Path(__file__).parents[1] / "streaming" / "AwayStorage.java"
#: The operations that can be made to fail separately.
OPERATIONS = ("open", "create", "write", "rename", "list", "status", "mkdirs", "delete")


class Storage:
    """The storage of one application under `folder`."""

    def __init__(self, folder: Path) -> None:
        self.classes = folder / "classes"
        self._folder = folder / "storage"
        self._away = folder / "away"
        self._odd = folder / "away.odd"
        self.classes.mkdir(parents=True)
        self._folder.mkdir()
        compile_java(_SOURCE, self.classes)

    def conf(self, driver_options: str = "") -> dict[str, str]:
        """Return the settings of driver and executors for it; the driver's JVM gets `driver_options`, too."""
        options = f"{SMALL_JVM} -Daway={self._away}"
        return {
            "spark.hadoop.fs.away.impl": "AwayStorage",
            "spark.driver.extraClassPath": os.pathsep.join(map(str, (jar_path(), self.classes))),
            "spark.driver.extraJavaOptions": f"{options} {driver_options}",
            "spark.executor.extraClassPath": str(self.classes),
            "spark.executor.extraJavaOptions": options,
        }

    def place(self, name: str) -> str:
        """Return the URI of a folder in it."""
        return f"away://{self._folder / name}"

    def folder(self, name: str) -> Path:
        """Return the local path of a folder in it."""
        return self._folder / name

    def take_away(self) -> None:
        """Make it unreachable."""
        self._away.touch()

    def be_odd(self, operation: str, *, percent: int = 0, ms: int = 0) -> None:
        """Make an operation (or "all") fail in `percent` of 100 cases, and take `ms` ms longer as well."""
        before = self._odd.read_text() if self._odd.exists() else ""
        hidden = self._odd.with_suffix(".new")
        hidden.write_text(f"{before}{operation} {percent} {ms}\n")
        hidden.replace(self._odd)

    def bring_back(self) -> None:
        """Make it reachable, fast and reliable again; do nothing if it is."""
        self._away.unlink(missing_ok=True)
        self._odd.unlink(missing_ok=True)
