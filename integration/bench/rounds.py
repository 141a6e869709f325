"""Rounds of 2 executors -> 3 -> 2 under a running query: a worker joins, then is killed with SIGKILL."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from integration.bench.application import TRIGGER_MS, Application, Variant, now_ms
from integration.bench.batches import Batch, first_output_after, longest_gap, missed_triggers
from integration.bench.figures import p50_max
from spark_elastic.core.events import ExecutorAdded
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.processes import ProcessFailure

# Enough batches to cover the aftermath of a change: the first ones on a new executor are slow.
SETTLE_BATCHES = 8
_SETTLE_TIMEOUT_S = 300.0
# Until about its hundredth batch, a driver still compiles: a batch takes longer than the trigger interval.
WARM_UP_BATCHES = 100


@attrs.frozen(kw_only=True)
class Round:
    """The moments of one round, in epoch ms; `grown` and `shrunk` are None if the change never took effect.

    It has `grown` when a task of a micro-batch with the new count starts on the new executor, and `shrunk`
    when a micro-batch with the smaller count starts. `warm_up_ms` is the time for which the warm-up held the
    new executor back, None if it did not.
    """

    registered: int
    grown: int | None
    killed: int
    shrunk: int | None
    ended: int
    warm_up_ms: int | None


@attrs.frozen(kw_only=True)
class Rounds:
    """All rounds of one run and the micro-batches around them."""

    rounds: Sequence[Round]
    batches: Sequence[Batch]

    def kill_to_output_ms(self) -> list[int]:
        """Return per round the time from the kill to the first output of a batch that started after it."""
        outputs = [(r.killed, first_output_after(self.batches, r.killed)) for r in self.rounds]
        return [output - killed for killed, output in outputs if output is not None]

    def summary(self) -> dict[str, object]:
        """Return the figures; changes that never took effect count only under `not_in_force`."""
        grown = [r.grown - r.registered for r in self.rounds if r.grown is not None]
        shrunk = [r.shrunk - r.killed for r in self.rounds if r.shrunk is not None]
        up = [(r.registered, r.killed) for r in self.rounds]
        down = [(r.killed, r.ended) for r in self.rounds]
        gaps_up = [longest_gap(self.batches, *window) for window in up]
        gaps_down = [longest_gap(self.batches, *window) for window in down]
        missed_up = sum(missed_triggers(self.batches, *window, TRIGGER_MS) for window in up)
        missed_down = sum(missed_triggers(self.batches, *window, TRIGGER_MS) for window in down)
        return {
            "trigger_ms": TRIGGER_MS,
            "in_force_ms": p50_max(grown),
            "warm_up_ms": p50_max(r.warm_up_ms for r in self.rounds if r.warm_up_ms is not None),
            "output_gap_ms": p50_max(gap.whole_ms for gap in gaps_up),
            "output_gap_before_batch_ms": p50_max(gap.before_ms for gap in gaps_up),
            "output_gap_batch_ms": p50_max(gap.batch_ms for gap in gaps_up),
            "missed_triggers": missed_up + missed_down,
            "rounds": len(self.rounds),
            "missed_when_growing": missed_up,
            "missed_when_killed": missed_down,
            "in_force_after_kill_ms": p50_max(shrunk),
            "output_gap_after_kill_ms": p50_max(gap.whole_ms for gap in gaps_down),
            "not_in_force": 2 * len(self.rounds) - len(grown) - len(shrunk),
            "state_mb": round(max(batch.state_bytes for batch in self.batches) / 1e6),
        }


def run_rounds(variant: Variant, count: int, *, preload_batches: int = 0, patience_s: float = 30.0) -> Rounds:
    """Run the query on its own cluster through `count` rounds.

    The first `preload_batches` micro-batches fill the state and are not measured. Each change may take
    `patience_s` to come into force; in plain Spark, where nothing changes, only the batches to settle are
    awaited.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name, Cluster(Path(name, "cluster")) as cluster:
        folder = Path(name)
        for _ in range(2):
            cluster.add_worker()
        with Application(cluster, folder, variant) as application:
            application.wait_for_executors(2)
            # Preloading 1 GB takes a minute or two.
            application.wait_for_batches(
                preload_batches + WARM_UP_BATCHES, timeout_s=300 + 10 * preload_batches
            )
            patience = patience_s if variant.plugin else 0.0
            rounds = [
                _round(cluster, application, number, patience, number / count) for number in range(count)
            ]
            batches = application.batches()
    return Rounds(rounds=rounds, batches=batches)


def _round(cluster: Cluster, application: Application, number: int, patience_s: float, part: float) -> Round:
    worker = cluster.add_worker()
    application.wait_for_executors(3)
    joined = _registration(application, number) if patience_s else None
    registered = joined.at if joined else now_ms()
    grown = _used(application, joined, patience_s) if joined else None
    settle(application)
    warm_up_ms = application.journal.warm_up_ms(joined.executor) if joined else None
    killed = into_interval(part)
    cluster.kill_worker(worker)
    shrunk = in_force(application, 2, killed, patience_s)
    settle(application)
    return Round(
        registered=registered,
        grown=grown,
        killed=killed,
        shrunk=shrunk,
        ended=now_ms(),
        warm_up_ms=warm_up_ms,
    )


def into_interval(part: float) -> int:
    """Wait until this part of a trigger interval has passed, and return that time (epoch ms).

    The cost of a lost worker depends on what its executor has just done, so the moment is not left to chance.
    The rounds cover every part of the interval, the same ones with and without the plugin.
    """
    # Triggers fall on multiples of the interval.
    wait_ms = (round(part * TRIGGER_MS) - now_ms()) % TRIGGER_MS
    time.sleep(wait_ms / 1000)
    return now_ms()


def _registration(application: Application, number: int) -> ExecutorAdded:
    def third() -> ExecutorAdded | None:
        added = application.journal.executors_added()
        return added[2 + number] if len(added) > 2 + number else None

    found = application.poll(third, timeout_s=10)
    if found is None:
        raise ProcessFailure("the journal does not tell of an executor that registered")
    return found


def _used(application: Application, joined: ExecutorAdded, patience_s: float) -> int | None:
    """Return when a task of a micro-batch with the new count started on the new executor (epoch ms)."""
    since = in_force(application, 3, joined.at, patience_s)
    return since and application.poll(lambda: application.tasks.first_on(joined.executor, since), patience_s)


def settle(application: Application) -> None:
    """Wait for `SETTLE_BATCHES` micro-batches that start after this call. Raises ProcessFailure."""
    moment = now_ms()

    def settled() -> bool | None:
        after = sum(batch.started >= moment for batch in application.batches())
        return True if after >= SETTLE_BATCHES else None

    if application.poll(settled, _SETTLE_TIMEOUT_S) is None:
        raise ProcessFailure(f"the query has stalled\n{application.driver.log_tail()}")


def in_force(application: Application, partitions: int, moment: int, patience_s: float) -> int | None:
    """Return the start of the first micro-batch after `moment` with this count (epoch ms), or None."""
    return application.poll(lambda: application.journal.in_force_since(partitions, moment), patience_s)
