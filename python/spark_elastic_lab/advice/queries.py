"""What a streaming query did with its slots, and what of it can be better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from attrs import evolve, field, frozen

from spark_elastic.core.reasons.reason import duration, size
from spark_elastic_lab.advice.costs import warm
from spark_elastic_lab.advice.told import MicroBatch, QueryLog, Told
from spark_elastic_lab.advice.trigger import Trigger, missed

_FEW_BATCHES = 20
_EMPTY = 0.5
_MISSED = 0.05
_IDLE = 0.5
_DRIVER = 0.6
_SKEW = 4.0
_SKEW_MS = 500
_SMALL_STATE = 1 << 20


@frozen(kw_only=True)
class Finding:
    """One thing that can be better: a short name that stays the same, a sentence, and its numbers."""

    code: str
    text: str
    numbers: Mapping[str, float] = field(factory=dict)


@frozen(kw_only=True)
class QueryReport:
    """A query in numbers. Durations are ms, shares are from 0 to 1, None is unknown.

    `median_ms`, `p95_ms` and `longest_ms` are durations of micro-batches, without the first ones of each run.
    Of the `triggers`, `missed` passed while a micro-batch ran. `partitions` is the usual count, `tasks` the
    number of tasks of a micro-batch after shuffles, of which the share `empty` had no rows. `slots` are the
    fewest, the usual and the most; a micro-batch left the share `idle` of them without a task while it ran.
    The share `driver` of its time no stage ran.
    """

    query: str
    name: str
    stateful: bool
    store: str | None
    sources: tuple[str, ...]
    batches: int
    rows: int
    trigger: Trigger
    median_ms: float
    p95_ms: float
    longest_ms: int
    triggers: int
    missed: int
    partitions: int | None
    tasks: int
    empty: float | None
    slots: tuple[int, int, int]
    idle: float | None
    driver: float | None
    state_rows: int
    state_bytes: int
    spilled_bytes: int
    error: str | None
    findings: tuple[Finding, ...]
    unsure: tuple[str, ...]

    @property
    def has_many_partitions(self) -> bool:
        """Whether its partitions need more than two waves of tasks on its usual slots."""
        _, slots, _ = self.slots
        return (self.partitions or 0) > 2 * slots

    @property
    def state_rows_per_partition(self) -> float:
        """The rows of its state in one partition, the mean."""
        return self.state_rows / max(1, self.partitions or 1)

    @property
    def state_bytes_per_partition(self) -> float:
        """The bytes of its state in one partition, the mean."""
        return self.state_bytes / max(1, self.partitions or 1)


def query_report(query: QueryLog, trigger: Trigger, told: Told) -> QueryReport:
    """Describe a query that has committed a micro-batch with rows or tasks."""
    all_batches = query.batches
    batches = warm(all_batches) or all_batches
    took = sorted(one.took_ms for one in batches)
    slots = [one.slots for one in all_batches]
    tasks = sum(one.work.tasks for one in batches)
    passed, triggers = missed(all_batches, trigger.interval_ms)
    latest = all_batches[-1]
    counts = Counter(one.partitions for one in batches if one.partitions)
    usual = counts.most_common(1)[0][0] if counts else None
    report = QueryReport(
        query=query.query,
        name=query.title,
        stateful=query.stateful,
        store=("rocksdb" if query.rocksdb else "hdfs") if query.stateful else None,
        sources=query.sources,
        batches=len(all_batches),
        rows=sum(one.rows for one in all_batches),
        trigger=trigger,
        median_ms=median(took),
        p95_ms=took[min(len(took) - 1, int(len(took) * 0.95))],
        longest_ms=took[-1],
        triggers=triggers,
        missed=passed,
        partitions=usual,
        tasks=round(median(one.work.tasks for one in batches)),
        empty=sum(one.work.empty for one in batches) / tasks if tasks else None,
        slots=(min(slots), Counter(slots).most_common(1)[0][0], max(slots)),
        idle=_idle(batches),
        driver=_driver(batches),
        state_rows=latest.state_rows,
        state_bytes=latest.state_bytes,
        spilled_bytes=sum(one.read.spilled_bytes + one.work.spilled_bytes for one in all_batches),
        error=query.error,
        findings=(),
        unsure=tuple(_unsure(query, trigger, batches, told)),
    )
    return evolve(report, findings=_findings(report, batches))


def _idle(batches: Sequence[MicroBatch]) -> float | None:
    there = sum(one.slots * one.took_ms for one in batches)
    busy = sum(one.read.task_ms + one.work.task_ms for one in batches)
    return max(0.0, 1 - busy / there) if there and busy else None


def _driver(batches: Sequence[MicroBatch]) -> float | None:
    took = sum(one.took_ms for one in batches)
    stages = sum(min(one.took_ms, one.read.wall_ms + one.work.wall_ms) for one in batches)
    return 1 - stages / took if took and stages else None


# ---- What can be better: one check for each finding, which returns None if there is nothing to say.


def _missed_triggers(report: QueryReport, batches: Sequence[MicroBatch]) -> Finding | None:
    if not report.triggers or report.missed / report.triggers < _MISSED:
        return None
    text = (
        f"{report.missed} of {report.triggers} triggers passed while a micro-batch ran: it takes "
        f"{duration(report.median_ms)}, the interval is {duration(report.trigger.interval_ms)}"
    )
    numbers = {"missed": report.missed, "triggers": report.triggers}
    return Finding(code="missed_triggers", text=text, numbers=numbers)


def _partitions(report: QueryReport, batches: Sequence[MicroBatch]) -> Finding | None:
    partitions, (_, slots, _) = report.partitions, report.slots
    if not partitions or not slots:
        return None
    numbers = {"partitions": partitions, "slots": slots}
    text = f"{partitions} partitions on {slots} slots: "
    if report.has_many_partitions:
        text += f"each stage runs {-(-partitions // slots)} tasks in each slot"
        if report.empty is not None and report.empty >= _EMPTY:
            text += f", and {report.empty:.0%} of the tasks have no rows"
        return Finding(code="too_many_partitions", text=text, numbers=numbers)
    if partitions < slots and report.tasks:
        text += f"{slots - partitions} of them never have a task after the shuffle"
        return Finding(code="too_few_partitions", text=text, numbers=numbers)
    return None


def _small_state(report: QueryReport, batches: Sequence[MicroBatch]) -> Finding | None:
    each = report.state_bytes_per_partition
    if not report.stateful or not report.has_many_partitions or each >= _SMALL_STATE:
        return None
    text = (
        f"a partition holds {size(round(each))} of state in {report.state_rows_per_partition:,.0f} rows, and "
        "each is committed in every micro-batch"
    )
    return Finding(code="small_state", text=text, numbers={"bytes": each})


def _skewed(report: QueryReport, batches: Sequence[MicroBatch]) -> Finding | None:
    """Return how much the longest task after a shuffle exceeds the mean, if that is much."""
    ratios = [
        (one.work.longest_ms * one.work.tasks / max(1, one.work.task_ms), one.work.longest_ms)
        for one in batches
        if one.work.tasks >= 2
    ]
    if not ratios:
        return None
    ratio, longest = median(ratio for ratio, _ in ratios), median(longest for _, longest in ratios)
    if ratio < _SKEW or longest < _SKEW_MS:
        return None
    text = (
        f"the longest task of a micro-batch takes {duration(longest)}, {ratio:.1f} times the mean: some keys "
        "have most of the rows, which no number of partitions divides"
    )
    return Finding(code="skewed", text=text, numbers={"ratio": ratio, "longest_ms": longest})


def _spilled(report: QueryReport, batches: Sequence[MicroBatch]) -> Finding | None:
    if not report.spilled_bytes:
        return None
    text = (
        f"tasks wrote {size(report.spilled_bytes)} to disk that did not fit into memory: partitions are too "
        "large for the memory of a slot"
    )
    return Finding(code="spilled", text=text, numbers={"bytes": report.spilled_bytes})


def _driver_time(report: QueryReport, batches: Sequence[MicroBatch]) -> Finding | None:
    if report.driver is None or report.driver < _DRIVER:
        return None
    text = (
        f"no stage ran for {report.driver:.0%} of the time of a micro-batch: planning, offsets and commits "
        "in the driver, which more slots do not shorten"
    )
    return Finding(code="driver_time", text=text, numbers={"share": report.driver})


def _idle_slots(report: QueryReport, batches: Sequence[MicroBatch]) -> Finding | None:
    if report.idle is None or report.idle < _IDLE:
        return None
    text = f"{report.idle:.0%} of the slots had no task of it while its micro-batches ran"
    return Finding(code="idle_slots", text=text, numbers={"share": report.idle})


_CHECKS = (_missed_triggers, _partitions, _small_state, _skewed, _spilled, _driver_time, _idle_slots)


def _findings(report: QueryReport, batches: Sequence[MicroBatch]) -> tuple[Finding, ...]:
    return tuple(found for check in _CHECKS if (found := check(report, batches)) is not None)


def _unsure(query: QueryLog, trigger: Trigger, batches: Sequence[MicroBatch], told: Told) -> list[str]:
    found = []
    if len(query.batches) < _FEW_BATCHES:
        found.append(f"{len(query.batches)} micro-batches are few: let it run for {_FEW_BATCHES} or more")
    if trigger.known == "unknown":
        found.append(
            "the log does not contain the trigger, and no micro-batch waited for one: "
            f"type --trigger '{query.title}=10s' if it has an interval"
        )
    elif trigger.known == "found" and trigger.interval_ms:
        found.append(
            f"the trigger of {duration(trigger.interval_ms)} is derived from when {trigger.waited} "
            f"micro-batches began ({trigger.fit:.0%} fit)"
        )
    if not any(one.read.tasks or one.work.tasks for one in batches):
        found.append("the log has no tasks of its micro-batches: their slots and partitions are unknown")
    if not told.slots.times:
        found.append("the log has no executors: slots are unknown")
    if all(one.behind is None for one in query.batches):
        found.append("its sources do not say how many rows they had left: what was read counts as the load")
    return found
