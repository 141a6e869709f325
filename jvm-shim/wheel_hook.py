"""Refuse to build a wheel or source distribution that lacks a jar."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The build backend loads this file by its path, so modules beside it cannot be imported yet.
sys.path.insert(0, str(Path(__file__).parent))
from spark_versions import supported


class JarCheck(BuildHookInterface[Any]):
    """Checks before packaging that the jar of every supported Spark version exists."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise SystemExit if a jar is missing; an editable install does not need the jars."""
        if version == "editable":
            return
        jars = Path(self.root, "python", "spark_elastic", "jars")
        names = [row.jar_name(self.metadata.version) for row in supported()]
        missing = [name for name in names if not (jars / name).is_file()]
        if missing:
            raise SystemExit(f"spark-elastic: {jars} lacks {', '.join(missing)}: type `make jars` first")
