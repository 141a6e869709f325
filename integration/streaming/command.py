"""Calls the installed command without this machine's environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).with_name("spark-elastic")
COMMAND_S = 120.0


def spark_elastic(url: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask the driver whose Spark UI is at `url`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_ELASTIC_")}
    clean.pop("SSL_CERT_FILE", None)
    return subprocess.run(
        [COMMAND, *arguments],
        env={**clean, "SPARK_ELASTIC_URL": url, **environment},
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
