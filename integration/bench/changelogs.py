"""What changelogs cost or save in Spark itself: commits, and the recovery after a lost worker.

With changelogs (`changelogCheckpointing.enabled`) a micro-batch commits its changes, and stores upload
snapshots now and then; without, each micro-batch uploads a snapshot. Recovery fetches a snapshot and repeats
the changes since.
"""

from __future__ import annotations

from collections.abc import Mapping

from integration.bench.application import Variant
from integration.bench.figures import p50_max
from integration.bench.rounds import WARM_UP_BATCHES, run_rounds
from integration.bench.stream_app import KEYS_PER_BATCH_AT_FIRST
from integration.streaming.state_store import REPARTITIONABLE

_SWITCH = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_THREE = {**REPARTITIONABLE, "spark.sql.shuffle.partitions": "3"}


def changelogs(rounds: int, keys: int) -> dict[str, object]:
    """Return times (ms) of plain Spark without and with changelogs: for a small state, and for `keys` keys.

    A round is two workers, a third that joins, and its end by SIGKILL.
    """
    return {
        kind: {
            name: _times(kind, {**_THREE, _SWITCH: switch}, rounds, size)
            for name, switch in (("snapshots", "false"), ("changelogs", "true"))
        }
        for kind, size in (("stateful_small", 0), ("stateful_large", keys))
    }


def _times(kind: str, conf: Mapping[str, str], rounds: int, keys: int) -> dict[str, object]:
    preload = -(-keys // KEYS_PER_BATCH_AT_FIRST)
    name = f"{kind}-{conf[_SWITCH]}"
    variant = Variant(name=name, kind=kind, plugin=False, conf=conf, state_keys=keys)
    run = run_rounds(variant, rounds, preload_batches=preload)
    first = run.rounds[0].registered
    before = [batch for batch in run.batches if batch.output < first][preload + WARM_UP_BATCHES // 2 :]
    summary = run.summary()
    return {
        "batch_ms": p50_max(batch.duration_ms for batch in before),
        "kill_to_output_ms": p50_max(run.kill_to_output_ms()),
        "output_gap_after_kill_ms": summary["output_gap_after_kill_ms"],
        "state_mb": summary["state_mb"],
    }
