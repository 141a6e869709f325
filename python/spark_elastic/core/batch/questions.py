"""What is asked about a stage, and what is answered: the twin of what the shim asks (Contract.scala).

Sizes are bytes. A group is a set of exchanges whose partitions go together, such as the two sides of a join:
they get one number, and the same ranges. `slots` is what there is now, 0 if that is not known. What the
application itself has set: `chosen` is its spark.sql.shuffle.partitions, `parallelism` its
spark.default.parallelism, `advised` its spark.sql.adaptive.advisoryPartitionSizeInBytes, and of its
spark.sql.adaptive.coalescePartitions `lower` is minPartitionNum, `smallest` minPartitionSize and
`parallelism_first` parallelismFirst; None if it has none. `plan` names what is asked about in each of its
executions, and `kept` is what it was given before; None if it was given nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from spark_elastic.core.actions import DecisionKind
from spark_elastic.core.reasons.batch import STAGE_REASONS
from spark_elastic.core.reasons.reason import fill

# Why a stage gets what it gets: the record that comes with each answer.


@frozen(kw_only=True)
class StageRecord:
    """A decision about a stage: a reason of the catalogue, its sentence, and what was asked and compared.

    `before` is what Spark would do, `after` what is to be done, None: as Spark does.
    """

    kind: DecisionKind
    reason: str
    message: str
    before: int | None
    after: int | None
    numbers: Mapping[str, float | int | str] = field(factory=dict)


def record(
    reason: str, *, before: int | None = None, after: int | None = None, **numbers: float | int | str
) -> StageRecord:
    """Make a record. Raises KeyError for an unknown reason, or if its sentence lacks a number."""
    entry = STAGE_REASONS[reason]
    return StageRecord(
        kind=entry.kind,
        reason=reason,
        message=fill(entry.sentence, before=before, after=after, **numbers),
        before=before,
        after=after,
        numbers=numbers,
    )


Left = Literal["skew", "local"]
"""What Spark itself has done already: split partitions for a join, or read map outputs where they are."""


@frozen(kw_only=True)
class PlannedExchange:
    """An exchange that has not run: its expected bytes, -1 if they are not known.

    `most` is how many they can be, None if nobody can tell. `source` names the plan and its data that write
    it; what is learned about it is kept under this name.
    """

    id: str
    bytes: int
    source: str = ""
    most: int | None = None


@frozen(kw_only=True)
class InitialCount:
    """Ask how many partitions the exchanges of a group write; `planned` is Spark's own number.

    `pinned`: something above may tell how many there are, such as a sample with a seed.
    """

    group: str
    exchanges: tuple[PlannedExchange, ...]
    planned: int
    slots: int
    chosen: int | None = None
    parallelism: int | None = None
    advised: int | None = None
    lower: int | None = None
    smallest: int | None = None
    plan: str = ""
    pinned: bool = True
    kept: int | None = None


@frozen(kw_only=True)
class InitialCountAnswer:
    """The number of partitions, None: Spark's own."""

    group: str
    partitions: int | None
    record: StageRecord


@frozen(kw_only=True)
class WrittenExchange:
    """An exchange that has run: the bytes of its partitions."""

    id: str
    bytes: tuple[int, ...]


@frozen(kw_only=True)
class Ranges:
    """Ask which ranges the tasks of a group read.

    All its exchanges have as many partitions. `left`: the group is Spark's. `kept` is where each of the
    ranges ended that the plan was given before for about the same sizes; empty: they were Spark's.
    """

    group: str
    exchanges: tuple[WrittenExchange, ...]
    slots: int
    left: Left | None = None
    chosen: int | None = None
    parallelism: int | None = None
    advised: int | None = None
    lower: int | None = None
    parallelism_first: bool | None = None
    smallest: int | None = None
    plan: str = ""
    kept: tuple[int, ...] | None = None


@frozen(kw_only=True)
class Spec:
    """What one task reads: the partitions `start` up to before `end`, of all exchanges of the group."""

    start: int
    end: int


@frozen(kw_only=True)
class RangesAnswer:
    """What each task reads, None: as Spark would have it."""

    group: str
    specs: tuple[Spec, ...] | None
    record: StageRecord


@frozen(kw_only=True)
class SplitSize:
    """Ask how many tasks share out the files of a scan, and so how large its splits are.

    `bytes` is what is left to read after pruning, in `openings` stretches of files, each of which counts for
    `smallest` bytes more; `planned` is Spark's own number of tasks. A split is to have `smallest` to
    `largest` bytes, unless there would be more splits than sources may have, or than `most`: as many as there
    are files, where none can be split.
    """

    scan: str
    bytes: int
    openings: int = 0
    slots: int
    planned: int
    smallest: int
    largest: int
    most: int | None = None


@frozen(kw_only=True)
class SplitSizeAnswer:
    """The number of tasks, None: Spark's own."""

    scan: str
    tasks: int | None
    record: StageRecord


@frozen(kw_only=True)
class SplitOffsets:
    """Ask in how many tasks a batch query is to read Kafka at least.

    `late` says that its tasks are to find out for themselves where its partitions end.
    """

    scan: str
    late: bool
    slots: int


@frozen(kw_only=True)
class SplitOffsetsAnswer:
    """The least number of tasks, None: one for each of Kafka's partitions."""

    scan: str
    tasks: int | None
    record: StageRecord


@frozen(kw_only=True)
class JoinPartitions:
    """Ask in how many tasks a source is read whose partitions are its own: Spark can only join some.

    `source` says what it is: its kind of reader, such as that of Iceberg or of JDBC. `planned` are its
    partitions, `joinable` says that nothing above the scan relies on them.
    """

    scan: str
    source: str
    planned: int
    joinable: bool
    slots: int


@frozen(kw_only=True)
class JoinPartitionsAnswer:
    """The number of tasks, None: one for each of the source's partitions."""

    scan: str
    tasks: int | None
    record: StageRecord


Question = InitialCount | Ranges | SplitSize | SplitOffsets | JoinPartitions
Answer = InitialCountAnswer | RangesAnswer | SplitSizeAnswer | SplitOffsetsAnswer | JoinPartitionsAnswer
QUESTION_TYPES: tuple[type[Question], ...] = (InitialCount, Ranges, SplitSize, SplitOffsets, JoinPartitions)
ANSWER_TYPES: tuple[type[Answer], ...] = (
    InitialCountAnswer,
    RangesAnswer,
    SplitSizeAnswer,
    SplitOffsetsAnswer,
    JoinPartitionsAnswer,
)
