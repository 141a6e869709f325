"""Make what the tests need and can be made here: the programs, and the image that stands in for Spark's.

usage: python -m integration.kubernetes
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from integration.go_modules import Unavailable
from integration.kubernetes.images import Images
from integration.kubernetes.parts import programs


def main() -> None:
    try:
        programs()
        with tempfile.TemporaryDirectory() as scratch:
            Images(Path(scratch, "images")).stand_in()
    except Unavailable as error:
        sys.exit(f"spark-elastic: Kubernetes cannot run here: {error}")


if __name__ == "__main__":
    main()
