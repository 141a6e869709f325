"""The benchmark's streaming application, running on a cluster with or without the plugin."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import attrs

from integration.bench.batches import Batch, batches_in
from integration.bench.policy_journal import UNBOUNDED, PolicyJournal
from spark_elastic.jar import jar_path
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic_lab.demo.task_log import TaskLog, event_log_conf
from spark_elastic_tools.tail import GrowingFile

TRIGGER_MS = 500
_APPLICATION = Path(__file__).parent / "stream_app.py"
_POLL_S = 0.2
# Generous, as it only bounds a hang and a busy machine is slow.
_START_TIMEOUT_S = 300.0

_Found = TypeVar("_Found")


def plugin_conf() -> dict[str, str]:
    """Return only the settings that turn the plugin on."""
    jar = str(jar_path())
    return {
        "spark.plugins": "org.apache.spark.elastic.ElasticPlugin",
        "spark.jars": jar,
        "spark.driver.extraClassPath": jar,
        "spark.elastic.schedulerMode": "reactive",
    }


@attrs.frozen(kw_only=True)
class Variant:
    """A configuration: the query's kind, plugin or not, Spark's settings; `name` is unique on its cluster.

    It continues the `checkpoint` of earlier variants, None: has one of its own.
    """

    name: str
    kind: str
    plugin: bool
    conf: Mapping[str, str]
    state_keys: int = 0
    checkpoint: str | None = None


class Application:
    """A running application; a context manager that ends it."""

    def __init__(self, cluster: Cluster, folder: Path, variant: Variant) -> None:
        progress = folder / f"{variant.name}.progress"
        journal = folder / f"{variant.name}.journal"
        checkpoint = folder / f"{variant.checkpoint or variant.name}.checkpoint"
        events = folder / f"{variant.name}.events"
        events.mkdir()
        arguments = [variant.kind, checkpoint, progress, TRIGGER_MS, variant.state_keys]
        journaled = {"spark.elastic.journal.dir": str(journal), **UNBOUNDED}
        plugin = plugin_conf() | journaled if variant.plugin else {}
        self._progress = GrowingFile(progress)
        self._batches: list[Batch] = []
        self.journal = PolicyJournal(journal)
        self.tasks = TaskLog(events)
        self.driver: LoggedProcess = cluster.submit(
            _APPLICATION,
            [str(argument) for argument in arguments],
            conf={**event_log_conf(events), **variant.conf, **plugin},
            name=variant.name,
        )

    def __enter__(self) -> Application:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.driver.stop()

    def batches(self) -> list[Batch]:
        """Return the micro-batches so far."""
        self._batches += batches_in(self._progress.new_lines())
        return self._batches

    def wait_for_batches(self, count: int, timeout_s: float = _START_TIMEOUT_S) -> list[Batch]:
        """Return all batches once there are `count`. Raises ProcessFailure after `timeout_s`."""

        def enough() -> list[Batch] | None:
            batches = self.batches()
            return batches if len(batches) >= count else None

        found = self.poll(enough, timeout_s)
        if found is None:
            raise ProcessFailure(f"no {count} micro-batches in {timeout_s:g} s\n{self.driver.log_tail()}")
        return found

    def wait_for_executors(self, count: int, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Return once `count` executors are registered. Raises ProcessFailure after `timeout_s`."""
        address = self.driver.wait_for_line(r"UI: (http\S+)", timeout_s)[1] + "/api/v1/applications"
        application = _get(address)[0]["id"]

        def enough() -> bool | None:
            known = _get(f"{address}/{application}/executors")
            # The driver is one of them.
            return True if sum(one["isActive"] for one in known) == count + 1 else None

        if self.poll(enough, timeout_s) is None:
            raise ProcessFailure(f"not {count} executors in {timeout_s:g} s\n{self.driver.log_tail()}")

    def poll(self, look: Callable[[], _Found | None], timeout_s: float) -> _Found | None:
        """Return what `look` finds, None after `timeout_s`. Raises ProcessFailure if the driver has ended."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = look()
            if found is not None:
                return found
            if not self.driver.running:
                raise ProcessFailure(f"the driver ended\n{self.driver.log_tail()}")
            time.sleep(_POLL_S)
        return None


def _get(address: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(address, timeout=_START_TIMEOUT_S) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


def now_ms() -> int:
    """Return the time in epoch ms."""
    return time.time_ns() // 1_000_000
