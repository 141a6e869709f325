"""Checkpoints that began in plain Spark: what converting or moving them takes, and what it gains."""

from __future__ import annotations

import tempfile
from pathlib import Path

from integration.bench.application import Application, Variant
from integration.bench.batches import Batch
from integration.bench.figures import p50
from integration.bench.stream_app import KEYS_PER_BATCH_AT_FIRST
from integration.streaming.launch import AT_ONCE
from integration.streaming.state_store import REPARTITIONABLE
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.processes import ProcessFailure

_WORKERS = 2
_SLOTS_EACH = 2
# Spark's default.
_PARTITIONS = 200
_PARTITIONS_OF_LARGE = 40
# Spark's own store keeps all state in the memory of executors.
_MEMORY_MB = 4096
_LARGE = {"spark.executor.memory": "3g"}
# It starts with all executors.
_CONTINUED = {
    **AT_ONCE,
    "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "10s",
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    "spark.elastic.stateStore.convert": "atStart",
}
_FORMAT_1 = {**REPARTITIONABLE, "spark.sql.streaming.stateStore.checkpointFormatVersion": "1"}


def old_checkpoint(*, batches: int, keys: int) -> dict[str, object]:
    """Measure a small state of 200 partitions, and a large state of `keys` keys in both of Spark's stores.

    The small one has its micro-batch times (ms, median of `batches`) before and after its conversion, the
    large ones have the time (s) in which their state is rewritten, and its size.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name, Cluster(Path(name, "cluster")) as cluster:
        for _ in range(_WORKERS):
            cluster.add_worker(cores=_SLOTS_EACH, memory_mb=_MEMORY_MB)
        old = _Checkpoints(cluster, Path(name))
        return {
            "slots": _WORKERS * _SLOTS_EACH,
            "batch_ms": old.batch_times(batches),
            "convert": old.rewritten("hdfs", {}, keys),
            "move_format_1": old.rewritten("rocksdb-1", _FORMAT_1, keys),
        }


class _Checkpoints:
    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder

    def batch_times(self, batches: int) -> dict[str, float]:
        """Run the small query in plain Spark, then with the plugin from the same checkpoint."""
        found = {}
        for name, count, conf in (
            ("before", max(4, batches // 10), {"spark.sql.shuffle.partitions": str(_PARTITIONS)}),
            ("after", batches, _CONTINUED),
        ):
            with self._run(name, "small", "stateful_small", conf, plugin=conf is _CONTINUED) as application:
                known = application.wait_for_batches(count // 2 + count)
                found[name] = p50(batch.duration_ms for batch in known[count // 2 :])
        return {**found, "ratio": round(found["before"] / found["after"], 2)}

    def rewritten(self, name: str, store: dict[str, str], keys: int) -> dict[str, float | None]:
        """Fill a large state in plain Spark, and start the query from it with the plugin."""
        conf = {**_LARGE, **store, "spark.sql.shuffle.partitions": str(_PARTITIONS_OF_LARGE)}
        preload = -(-keys // KEYS_PER_BATCH_AT_FIRST) + 2
        kind = "stateful_large"
        with self._run(f"{name}-plain", name, kind, conf, keys=keys) as application:
            application.wait_for_batches(preload, timeout_s=300 + 30 * preload)
        before = self._state_bytes(name)
        conf = {**_LARGE, **store, **_CONTINUED}
        with self._run(f"{name}-elastic", name, kind, conf, plugin=True, keys=keys) as application:
            first = application.poll(lambda: _first_moved(application), timeout_s=900)
            if first is None:
                raise ProcessFailure(f"the state has not been moved\n{application.driver.log_tail()}")
            took_ms = application.journal.longest_order_ms()
        return {
            "partitions_before": _PARTITIONS_OF_LARGE,
            "partitions_after": first.partitions,
            "state_mb": round(first.state_bytes / 1e6),
            "checkpoint_mb_before": round(before / 1e6),
            "written_mb": round((self._state_bytes(name) - before) / 1e6),
            "rewrite_s": round(took_ms / 1000, 1),
            "first_batch_s": round(first.duration_ms / 1000, 1),
        }

    def _run(
        self,
        name: str,
        checkpoint: str,
        kind: str,
        conf: dict[str, str],
        *,
        plugin: bool = False,
        keys: int = 0,
    ) -> Application:
        variant = Variant(
            name=name, checkpoint=checkpoint, kind=kind, plugin=plugin, conf=conf, state_keys=keys
        )
        return Application(self._cluster, self._folder, variant)

    def _state_bytes(self, checkpoint: str) -> int:
        state = self._folder / f"{checkpoint}.checkpoint" / "state"
        return sum(file.stat().st_size for file in state.rglob("*") if file.is_file())


def _first_moved(application: Application) -> Batch | None:
    """Return the first micro-batch with another count. One that had begun is completed before a move."""
    return next((one for one in application.batches() if one.partitions != _PARTITIONS_OF_LARGE), None)
