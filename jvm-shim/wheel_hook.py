"""Take the jars into a wheel or source distribution, and refuse to build one that lacks a jar.

With SPARK_ELASTIC_ONLY=4.2 in the environment, it has the jar for that Spark alone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The build backend loads this file by its path, so modules beside it cannot be imported yet.
sys.path.insert(0, str(Path(__file__).parent))
from spark_versions import named, supported


class Jars(BuildHookInterface[Any]):
    """Checks before packaging that the jars exist, which are not under version control."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise SystemExit if a jar is missing; an editable install does not need the jars."""
        if version == "editable":
            return
        jars = Path(self.root, "python", "spark_elastic", "jars")
        only = os.environ.get("SPARK_ELASTIC_ONLY")
        rows = (named(only),) if only else supported()
        names = [row.jar_name(self.metadata.version) for row in rows]
        missing = [name for name in names if not (jars / name).is_file()]
        if missing:
            raise SystemExit(f"spark-elastic: {jars} lacks {', '.join(missing)}: type `make jars` first")
        build_data["artifacts"] += [f"python/spark_elastic/jars/{name}" for name in names]
