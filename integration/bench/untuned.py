"""The batch time of a small stateful query without tuning: plain Spark, the plugin, the best fixed count."""

from __future__ import annotations

import tempfile
from pathlib import Path

from integration.bench.application import Application, Variant
from integration.bench.figures import p50
from integration.streaming.state_store import REPARTITIONABLE
from spark_elastic_lab.demo.cluster import Cluster

_COUNTS = (1, 2, 4, 8)


def untuned(*, batches: int) -> dict[str, float]:
    """Return median micro-batch times (ms), each over `batches` batches on two executors after a warm-up."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name, Cluster(Path(name, "cluster")) as cluster:
        folder = Path(name)
        for _ in range(2):
            cluster.add_worker()

        def median(name: str, conf: dict[str, str], *, plugin: bool = False, of: int = batches) -> float:
            variant = Variant(name=name, kind="stateful_small", plugin=plugin, conf=conf)
            with Application(cluster, folder, variant) as application:
                warm_up = of // 2
                return p50(b.duration_ms for b in application.wait_for_batches(warm_up + of)[warm_up:])

        # One batch of plain Spark takes as long as twenty of the others.
        plain = median("plain", {}, of=max(4, batches // 10))
        elastic = median("elastic", {}, plugin=True)
        fixed = {n: median(f"fixed-{n}", {"spark.sql.shuffle.partitions": str(n)}) for n in _COUNTS}
        best = min(fixed, key=lambda n: fixed[n])
        # The plugin gives new queries the store that re-partitioning needs; this run shows that store's cost.
        same_store = median("same-store", {"spark.sql.shuffle.partitions": str(best), **REPARTITIONABLE})
    return {
        "plain": plain,
        "elastic": elastic,
        "best_fixed": fixed[best],
        "best_fixed_n": best,
        "best_fixed_rocksdb": same_store,
    }
