"""Write the event logs that unit tests read, from real runs: usage: python -m integration.advice.record.

What `advise` does not read is left out, so that they are small and name no path of this machine.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_elastic_lab.advice.told import Told
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.task_log import event_log_conf
from spark_elastic_tools.event_logs.files import find_logs

RECORDED = Path(__file__).parents[2] / "tests" / "unit" / "lab" / "advice" / "recorded"
APPS = Path(__file__).parent / "apps.py"
_SECONDS = 75
_LEFT_OUT = {
    "Accumulables",
    "Details",
    "RDD Info",
    "Stage Infos",
    "Task Executor Metrics",
    "physicalPlanDescription",
    "sparkPlanInfo",
    "details",
    "jobTags",
    "Log Urls",
    "Attributes",
    "JVM Information",
    "Hadoop Properties",
    "System Properties",
    "Metrics Properties",
    "Classpath Entries",
    "callSite.short",
    "callSite.long",
}
_KEPT_SETTINGS = ("spark.sql.", "spark.executor.cores", "spark.task.", "spark.elastic.")


def run(folder: Path, name: str, conf: Mapping[str, str], seconds: float, workers: int = 2) -> None:
    """Run an application on a cluster of its own with executors of one slot, and end both."""
    with Cluster(folder / "cluster") as cluster:
        for _ in range(workers):
            cluster.add_worker()
        driver = cluster.submit(APPS, [name, str(folder), str(seconds)], conf=conf)
        assert driver.wait(seconds + 240) == 0, driver.log_tail()


def shortened(value: Any, key: str = "") -> Any:
    """Leave out what `advise` does not read."""
    if isinstance(value, dict):
        inner = {name: shortened(one, name) for name, one in value.items() if name not in _LEFT_OUT}
        if key in ("Properties", "Spark Properties", "modifiedConfigs"):
            return {name: one for name, one in inner.items() if _is_kept(name, one)}
        return inner
    return [shortened(one) for one in value] if isinstance(value, list) else value


def _is_kept(name: str, value: Any) -> bool:
    ours = name.startswith(_KEPT_SETTINGS) or name in ("spark.master", "spark.plugins")
    of_query = name.startswith(("sql.streaming.", "streaming.sql."))
    return (ours or of_query) and "/" not in str(value)


def main() -> int:
    """Record both applications."""
    RECORDED.mkdir(parents=True, exist_ok=True)
    for name in ("stream", "batch"):
        with tempfile.TemporaryDirectory(prefix="record-") as folder:
            logs = Path(folder, "logs")
            logs.mkdir()
            conf = {**event_log_conf(logs), "spark.sql.shuffle.partitions": "16"}
            run(Path(folder), name, conf, _SECONDS)
            (log,) = find_logs(logs)
            lines = [json.dumps(shortened(event)) for event in log.events(Told.wants)]
        with gzip.GzipFile(RECORDED / f"{name}.gz", "wb", mtime=0) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
