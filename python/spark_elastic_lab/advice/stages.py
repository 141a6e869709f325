"""Stages of batch jobs: their partitions, and those that the plugin's own rules would have chosen.

The rules (`core/batch`) are asked with the bytes that the log shows, as the shim asks them with those that it
expects. The log has the bytes that each task read, not those of each partition: where Spark had joined
partitions before, the ranges start from what it had joined.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Literal

from attrs import define, field, frozen

from spark_elastic.core.batch.initial import initial_count
from spark_elastic.core.batch.questions import InitialCount, PlannedExchange, Ranges, WrittenExchange
from spark_elastic.core.batch.ranges import ranges, skewed
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.keys.key import parse_size
from spark_elastic.core.reasons.reason import duration, size
from spark_elastic_lab.advice.told import StageFacts

Kind = Literal["too_many", "too_few", "skewed", "spilled", "fine"]

_KEPT = 1_000
_LEAST_LOST_MS = 100
_MANY = 1.5
_SKEW = 4.0
_SKEW_MS = 1_000
_SPARKS_OWN = 200
_PARTITIONS = "spark.sql.shuffle.partitions"
_ADVISED = "spark.sql.adaptive.advisoryPartitionSizeInBytes"


@frozen(kw_only=True)
class StageReport:
    """A stage that reads a shuffle; times are ms, sizes are bytes.

    It ran `tasks` on `slots` and took `wall_ms`; `largest` is the most that one task read. The plugin would
    have written `partitions` and read them with `wanted` tasks, None if its rules leave the stage to Spark.
    Of `wall_ms`, `lost_ms` would not have passed if its work had been spread evenly over all slots, with the
    wanted number of tasks. `kinds` are what is wrong with it, the gravest first.
    """

    stage: int
    execution: int | None
    name: str
    tasks: int
    failed: int
    slots: int
    wall_ms: int
    task_ms: int
    longest_ms: int
    median_ms: float
    bytes: int
    largest: int
    spilled_bytes: int
    partitions: int | None
    wanted: int | None
    lost_ms: int
    kinds: tuple[Kind, ...]
    text: str


@define
class StagesSeen:
    """All stages of batch jobs; `kept` are those that lost the most time.

    `stages` counts all, `shuffles` those that read a shuffle. `wall_ms` and `lost_ms` are sums over these.
    """

    settings: BatchSettings = field(factory=BatchSettings)
    stages: int = 0
    shuffles: int = 0
    wall_ms: int = 0
    lost_ms: int = 0
    failed: int = 0
    _kept: list[tuple[int, int, StageReport]] = field(factory=list)

    def add(self, stage: StageFacts) -> None:
        """Look at a stage."""
        self.stages += 1
        self.failed += stage.failed
        if not stage.reads_shuffle or not stage.slots:
            return
        self.shuffles += 1
        report = stage_report(stage, self.settings)
        self.wall_ms += report.wall_ms
        self.lost_ms += report.lost_ms
        if report.kinds != ("fine",):
            entry = (report.lost_ms, self.shuffles, report)
            if len(self._kept) < _KEPT:
                heapq.heappush(self._kept, entry)
            else:
                heapq.heappushpop(self._kept, entry)

    @property
    def kept(self) -> list[StageReport]:
        """The stages in which something is wrong, those that lost the most time first."""
        return [report for _, _, report in sorted(self._kept, reverse=True)]


def stage_report(stage: StageFacts, settings: BatchSettings) -> StageReport:
    """Describe a stage that read a shuffle on known slots."""
    partitions, wanted = chosen(stage, settings)
    lost = _lost_ms(stage, wanted)
    kinds = tuple(_kinds(stage, wanted, lost))
    return StageReport(
        stage=stage.stage,
        execution=stage.execution,
        name=stage.name,
        tasks=stage.tasks,
        failed=stage.failed,
        slots=stage.slots,
        wall_ms=stage.wall_ms,
        task_ms=stage.task_ms,
        longest_ms=stage.longest_ms,
        median_ms=stage.median_ms,
        bytes=sum(stage.sizes),
        largest=max(stage.sizes),
        spilled_bytes=stage.spilled_bytes,
        partitions=partitions,
        wanted=wanted,
        lost_ms=lost,
        kinds=kinds,
        text="; ".join(_says(kind, stage, wanted) for kind in kinds if kind != "fine"),
    )


def chosen(stage: StageFacts, settings: BatchSettings) -> tuple[int | None, int | None]:
    """Return the partitions that the plugin would have written for these bytes, and their tasks."""
    total = sum(stage.sizes)
    planned, advised = _number(stage.conf, _PARTITIONS), _bytes(stage.conf, _ADVISED)
    exchange = PlannedExchange(id="0", bytes=total, most=total)
    first = initial_count(
        InitialCount(
            group="0", exchanges=(exchange,), planned=planned or _SPARKS_OWN, slots=stage.slots,
            chosen=planned if planned != _SPARKS_OWN else None, advised=advised,
        ),
        settings.with_volume(advised),
    )  # fmt: skip
    if first.partitions is None:
        return None, None
    # Partitions of equal size, but those that had much more keep it: more of them do not divide a key.
    sizes = _divided(stage.sizes, first.partitions)
    read = ranges(
        Ranges(
            group="0", exchanges=(WrittenExchange(id="0", bytes=sizes),), slots=stage.slots, advised=advised
        ),
        settings.with_volume(advised),
    )
    return first.partitions, None if read.specs is None else len(read.specs)


def _divided(sizes: tuple[int, ...], partitions: int) -> tuple[int, ...]:
    """Spread the bytes of the tasks over another number of partitions."""
    far = skewed(sizes)
    large = [sizes[place] for place in sorted(far)][:partitions]
    rest, left = sum(sizes) - sum(large), partitions - len(large)
    if not left:
        return tuple(large)
    share, more = divmod(rest, left)
    return (*large, *(share + (place < more) for place in range(left)))


def _lost_ms(stage: StageFacts, wanted: int | None) -> int:
    """Return the time that an even spread of the same work over all slots would have saved."""
    tasks = wanted or stage.tasks
    overhead = max(0, stage.task_ms - stage.run_ms) / stage.tasks
    ideal = stage.run_ms / stage.slots + -(-tasks // stage.slots) * overhead
    return max(0, round(stage.wall_ms - ideal))


def _kinds(stage: StageFacts, wanted: int | None, lost: int) -> list[Kind]:
    found: list[Kind] = []
    if stage.spilled_bytes:
        found.append("spilled")
    longer = stage.longest_ms - stage.median_ms
    if stage.tasks > 1 and stage.longest_ms > _SKEW * stage.median_ms and longer >= _SKEW_MS:
        found.append("skewed")
    if wanted is not None and lost >= _LEAST_LOST_MS:
        if stage.tasks > _MANY * wanted and stage.tasks > stage.slots:
            found.append("too_many")
        elif wanted > _MANY * stage.tasks:
            found.append("too_few")
    return found or ["fine"]


def _says(kind: Kind, stage: StageFacts, wanted: int | None) -> str:
    match kind:
        case "spilled":
            return f"{size(stage.spilled_bytes)} did not fit into memory and went to disk"
        case "skewed":
            return (
                f"the longest task took {duration(stage.longest_ms)}, half of them "
                f"{duration(stage.median_ms)} or less"
            )
        case "too_many":
            return f"{stage.tasks} tasks for {size(sum(stage.sizes))}, {wanted} would do"
        case "too_few":
            read = f"{stage.tasks} tasks for {size(sum(stage.sizes))} on {stage.slots} slots"
            return f"{read}, {wanted} would be better"
    return ""


def _number(conf: Mapping[str, str], name: str) -> int | None:
    text = conf.get(name, "")
    return int(text) if text.isdigit() and int(text) > 0 else None


def _bytes(conf: Mapping[str, str], name: str) -> int | None:
    try:
        return parse_size(conf.get(name, "")) or None
    except ValueError:
        return None
