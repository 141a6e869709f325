"""Make what the tests need and can be made here: the programs, and the image that stands in for Spark's.

usage: python -m integration.kubernetes
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from integration.chart.helm import HELM
from integration.go_modules import Unavailable, programs_of
from integration.kubernetes.images import Images
from integration.kubernetes.keda import KEDA
from integration.kubernetes.kubeflow import OPERATOR
from integration.kubernetes.monitoring import ADAPTER
from integration.kubernetes.parts import programs
from integration.monitoring.prometheus import PROMETHEUS


def main() -> None:
    try:
        programs()
        for module in (HELM, PROMETHEUS, ADAPTER, KEDA, OPERATOR):
            programs_of(module)
        with tempfile.TemporaryDirectory() as scratch:
            Images(Path(scratch, "images")).stand_in()
    except Unavailable as error:
        sys.exit(f"spark-elastic: Kubernetes cannot run here: {error}")


if __name__ == "__main__":
    main()
