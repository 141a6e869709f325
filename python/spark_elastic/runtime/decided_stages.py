"""The last decisions about batch stages, as they can be looked at, and how large the tasks became by them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import accumulate, count
from statistics import median_low

from attrs import define, field, frozen

from spark_elastic.core.batch.questions import Ranges
from spark_elastic.gateway.port import JsonObject
from spark_elastic.wire import decode_question

STAGES_KEPT = 1_000
HISTOGRAM_BUCKETS = 12
_LISTS = ("exchanges", "specs")


@frozen(kw_only=True)
class Sizes:
    """Bytes of tasks, or of partitions where Spark was left to make its own tasks of them.

    `buckets` counts them in equal steps from 0 to the largest.
    """

    of_tasks: bool
    count: int
    total: int
    smallest: int
    median: int
    largest: int
    buckets: tuple[int, ...]


@define
class DecidedStage:
    """A decision with its number, and the question and answer as they are in the journal.

    Once it is `measured` its lists are gone: of a thousand stages with some thousand tasks each they would
    take hundreds of megabytes.
    """

    number: int
    stage: JsonObject
    _known: tuple[Sizes | None] | None = None

    @property
    def sizes(self) -> Sizes | None:
        """Return what there is to read by how many; None where that was not asked, or nobody knows."""
        stage = self.stage  # looked at first: what has no lists any more is known
        return _measure(stage) if self._known is None else self._known[0]

    def measured(self) -> None:
        """Keep the sizes in place of the lists that they come from."""
        self._known = (_measure(self.stage),)
        stage = {**self.stage}
        for part in ("question", "answer"):
            stage[part] = {name: value for name, value in stage[part].items() if name not in _LISTS}
        self.stage = stage


def _measure(stage: JsonObject) -> Sizes | None:
    question = decode_question(stage["question"])
    if not isinstance(question, Ranges):
        return None
    partitions = [sum(sizes) for sizes in zip(*(e.bytes for e in question.exchanges), strict=True)]
    specs = stage["answer"].get("specs")
    if specs is None:
        return _sizes(False, partitions)
    sums = [0, *accumulate(partitions)]
    return _sizes(True, [sums[spec["end"]] - sums[spec["start"]] for spec in specs])


def _sizes(of_tasks: bool, found: list[int]) -> Sizes | None:
    if not found:
        return None
    largest = max(found)
    buckets = [0] * HISTOGRAM_BUCKETS
    for size in found:
        buckets[min(size * HISTOGRAM_BUCKETS // (largest + 1), HISTOGRAM_BUCKETS - 1)] += 1
    return Sizes(
        of_tasks=of_tasks,
        count=len(found),
        total=sum(found),
        smallest=min(found),
        median=median_low(found),
        largest=largest,
        buckets=tuple(buckets),
    )


@define
class DecidedStages:
    """The last ones, numbered from 1; they are added by one thread, and may be read by others meanwhile."""

    _kept: deque[DecidedStage] = field(factory=lambda: deque(maxlen=STAGES_KEPT))
    _numbers: count[int] = field(factory=lambda: count(1))

    def add(self, stage: JsonObject) -> DecidedStage:
        """Add the newest one, and return it."""
        decided = DecidedStage(next(self._numbers), stage)
        self._kept.append(decided)
        return decided

    def newest_first(self) -> Sequence[DecidedStage]:
        """Return them."""
        return tuple(reversed(self._kept.copy()))
