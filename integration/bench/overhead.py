"""The cost of the plugin compared with plain Spark: batch time, CPU of the driver, start of an application.

Runs with and without the plugin alternate on one cluster, with the same settings down to the partition count.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from pathlib import Path

import attrs
import psutil

from integration.bench.application import Application, Variant, now_ms, plugin_conf
from integration.bench.figures import p50
from integration.streaming.state_store import REPARTITIONABLE
from spark_elastic_lab.demo.cluster import Cluster

_WARM_UP_BATCHES = 30
_SAME = {"spark.sql.shuffle.partitions": "2", **REPARTITIONABLE}
_PLUGIN = {"spark.elastic.explicitParallelism": "fixed"}
_START_APPLICATION = Path(__file__).parent / "start_app.py"


@attrs.frozen(kw_only=True)
class _Cpu:
    """CPU seconds used so far by the driver's JVM, the plugin's threads in it, and the policy process."""

    driver: float
    threads: float
    policy: float

    def since(self, earlier: _Cpu) -> _Cpu:
        """Return the CPU seconds used since then."""
        return _Cpu(
            driver=self.driver - earlier.driver,
            threads=self.threads - earlier.threads,
            policy=self.policy - earlier.policy,
        )


@attrs.frozen(kw_only=True)
class _Run:
    batch_ms: list[int]
    cpu: _Cpu


def overhead(*, pairs: int, batches: int) -> dict[str, object]:
    """Return `batch_time_ratio` (with / without) and `driver_cpu_share` (0..1) over `pairs` pairs of runs."""
    runs: dict[bool, list[_Run]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="bench-") as name, Cluster(Path(name, "cluster")) as cluster:
        for _ in range(2):
            cluster.add_worker()
        for pair in range(pairs):
            # The first run of a pair may meet a colder machine, so the order alternates.
            for plugin in (False, True) if pair % 2 == 0 else (True, False):
                runs[plugin].append(_run(cluster, Path(name), pair, batches, plugin=plugin))
    medians = {plugin: [statistics.median(run.batch_ms) for run in runs[plugin]] for plugin in runs}
    with_plugin = [run.cpu for run in runs[True]]
    own = sum(cpu.threads + cpu.policy for cpu in with_plugin)
    whole = sum(cpu.driver + cpu.policy for cpu in with_plugin)
    return {
        "batch_time_ratio": round(statistics.median(medians[True]) / statistics.median(medians[False]), 3),
        "driver_cpu_share": round(own / whole, 4),
        "batch_ms": {"elastic": medians[True], "plain": medians[False]},
        "driver_cpu_s": {
            "elastic": [round(cpu.driver + cpu.policy, 2) for cpu in with_plugin],
            "plain": [round(run.cpu.driver, 2) for run in runs[False]],
        },
    }


def startup_extra_ms(*, pairs: int) -> float:
    """Return how much later the smallest application ends its first job with the plugin (median, ms)."""
    times: dict[bool, list[int]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="bench-") as name, Cluster(Path(name, "cluster")) as cluster:
        for _ in range(2):
            cluster.add_worker()
        for pair in range(pairs):
            for plugin in (False, True) if pair % 2 == 0 else (True, False):
                times[plugin].append(_start(cluster, Path(name, f"{pair}-{plugin}"), plugin=plugin))
    return round(p50(times[True]) - p50(times[False]), 1)


def _run(cluster: Cluster, folder: Path, pair: int, batches: int, *, plugin: bool) -> _Run:
    conf = {**_SAME, **_PLUGIN} if plugin else _SAME
    variant = Variant(name=f"{pair}-{plugin}", kind="stateful_small", plugin=plugin, conf=conf)
    with Application(cluster, folder, variant) as application:
        application.wait_for_batches(_WARM_UP_BATCHES)
        before, begun = _cpu(application.driver.pid), len(application.batches())
        measured = application.wait_for_batches(begun + batches)[begun:]
        used = _cpu(application.driver.pid).since(before)
    return _Run(batch_ms=[batch.duration_ms for batch in measured], cpu=used)


def _start(cluster: Cluster, note: Path, *, plugin: bool) -> int:
    begun = now_ms()
    driver = cluster.submit(
        _START_APPLICATION, [str(note)], conf=plugin_conf() if plugin else {}, name=note.name
    )
    driver.wait(300)
    driver.stop()
    # The executors' resources are free again only after the master has seen them end.
    time.sleep(1)
    return int(note.read_text()) - begun


def _cpu(pid: int) -> _Cpu:
    driver = psutil.Process(pid)
    names = {int(task.name): (task / "comm").read_text() for task in Path(f"/proc/{pid}/task").iterdir()}
    own = [thread for thread in driver.threads() if names.get(thread.id, "").startswith("elastic-")]
    policies = [child for child in driver.children() if _is_policy(child)]
    return _Cpu(
        driver=sum(driver.cpu_times()[:2]),
        threads=sum(thread.user_time + thread.system_time for thread in own),
        policy=sum(sum(policy.cpu_times()[:2]) for policy in policies),
    )


def _is_policy(process: psutil.Process) -> bool:
    # A JVM also has short-lived children, which may have ended by now.
    with contextlib.suppress(psutil.Error):
        return "spark_elastic.runtime" in process.cmdline()
    return False
