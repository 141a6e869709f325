"""The last decisions about batch stages, for display, and the task sizes that resulted from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from statistics import median_low

from attrs import define, field, frozen

from spark_elastic.core.batch.questions import InitialCount, Ranges
from spark_elastic.runtime.port import JsonObject
from spark_elastic.wire import decode_question

STAGES_KEPT = 1_000
"""How many decisions of streaming queries are kept, and as many of all others."""
HISTOGRAM_BUCKETS = 12
_LISTS = ("exchanges", "specs")


@frozen(kw_only=True)
class Sizes:
    """Sizes of tasks in bytes, or of partitions if Spark was left to form its own tasks from them.

    `buckets` is a histogram in equal steps from 0 to the largest size.
    """

    of_tasks: bool
    count: int
    total: int
    smallest: int
    median: int
    largest: int
    buckets: tuple[int, ...]


@frozen(kw_only=True)
class Exchange:
    """A shuffle: the bytes that it has written, or is expected to write; None: unknown."""

    id: str
    bytes: int | None


@define
class DecidedStage:
    """A decision with its number, and the question and answer as they are in the journal.

    Once it is `measured`, its lists are dropped: for a thousand stages with some thousand tasks each they
    would take hundreds of megabytes.
    """

    number: int
    stage: JsonObject
    _known: tuple[Sizes | None, Sequence[Exchange]] | None = None

    @property
    def group(self) -> str:
        """The name of the shuffles or of the scan."""
        question = self.stage["question"]
        return str(question.get("scan", question.get("group")))

    @property
    def execution(self) -> str | None:
        """The SQL execution that it belongs to, or the operation of Spark Connect; None: neither."""
        return self._owner.partition("@")[0] or None

    @property
    def query(self) -> str | None:
        """The streaming query whose micro-batch, or `foreachBatch`, it belongs to; None: none."""
        return self._owner.partition("@")[2] or None

    @property
    def _owner(self) -> str:
        owner, colon, _ = self.group.partition(":")
        return owner if colon else ""

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """The exchanges of a group, empty for a scan."""
        stage = self.stage  # read first, as for the sizes
        return _exchanges(stage) if self._known is None else self._known[1]

    @property
    def sizes(self) -> Sizes | None:
        """The sizes of the tasks or partitions; None for other questions, or if there are none."""
        stage = self.stage  # read first: a stage without its lists has known sizes
        return _measure(stage) if self._known is None else self._known[0]

    def measured(self) -> None:
        """Replace the lists by the sizes computed from them."""
        self._known = _measure(self.stage), _exchanges(self.stage)
        stage = {**self.stage}
        for part in ("question", "answer"):
            stage[part] = {name: value for name, value in stage[part].items() if name not in _LISTS}
        self.stage = stage


def _exchanges(stage: JsonObject) -> Sequence[Exchange]:
    question = decode_question(stage["question"])
    if isinstance(question, Ranges):
        return [Exchange(id=e.id, bytes=sum(e.bytes)) for e in question.exchanges]
    if isinstance(question, InitialCount):
        return [Exchange(id=e.id, bytes=e.bytes if e.bytes >= 0 else None) for e in question.exchanges]
    return ()


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
    """The last decisions, numbered from 1, and those that are not in the journal yet.

    Those of streaming queries have room of their own: micro-batches never end, and their decisions must not
    displace those of batches. One thread adds decisions, and the loop's takes them for the journal; any
    thread may read them.
    """

    _streaming: deque[DecidedStage] = field(factory=lambda: deque(maxlen=STAGES_KEPT))
    _batch: deque[DecidedStage] = field(factory=lambda: deque(maxlen=STAGES_KEPT))
    _unwritten: deque[DecidedStage] = field(factory=deque)
    _numbers: count[int] = field(factory=lambda: count(1))

    def add(self, stage: JsonObject) -> None:
        """Add a question about a batch stage with its answer."""
        decided = DecidedStage(next(self._numbers), stage)
        (self._batch if decided.query is None else self._streaming).append(decided)
        self._unwritten.append(decided)

    def take_unwritten(self) -> Iterator[JsonObject]:
        """Yield the decisions that are not in the journal yet; the caller writes them to it."""
        while self._unwritten:
            decided = self._unwritten.popleft()
            yield decided.stage
            decided.measured()

    def newest_first(self) -> Sequence[DecidedStage]:
        """Return the last decisions, newest first."""
        kept = (*self._streaming.copy(), *self._batch.copy())
        return tuple(sorted(kept, key=lambda decided: decided.number, reverse=True))

    def by_execution(self) -> Sequence[Sequence[DecidedStage]]:
        """Return the last decisions of each execution, newest first, like the executions.

        A decision that belongs to none is alone.
        """
        found: dict[str | int, list[DecidedStage]] = {}
        for stage in self.newest_first():
            found.setdefault(stage.execution or stage.number, []).append(stage)
        return tuple(found.values())
