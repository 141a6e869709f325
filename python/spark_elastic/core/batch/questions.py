"""Questions about a stage, and their answers: the twin of the shim's questions (Contract.scala).

Sizes are bytes. A group is a set of exchanges whose partitions belong together, such as the two sides of a
join: they get one number, and the same ranges. `slots` is the current number, 0 if unknown; the policy
process fills it in, since the shim does not know it. These fields are settings of the application, None if it
has not set them: `chosen` is its spark.sql.shuffle.partitions, `parallelism` its spark.default.parallelism,
and `advised` its spark.sql.adaptive.advisoryPartitionSizeInBytes. Of its
spark.sql.adaptive.coalescePartitions, `lower` is minPartitionNum, `smallest` minPartitionSize and
`parallelism_first` parallelismFirst. `plan` identifies the subject of a question in each of its executions,
and `kept` is what it was given before, None if nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from spark_elastic.core.actions import DecisionKind
from spark_elastic.core.reasons.batch import STAGE_REASONS
from spark_elastic.core.reasons.reason import fill

# ---- Why a stage gets its answer: the record that comes with it.


@frozen(kw_only=True)
class StageRecord:
    """A decision about a stage: a reason of the catalogue, its sentence, and the values behind it.

    `before` is what Spark would do, `after` what should be done, None if the same as Spark.
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
"""What Spark itself has already done: split partitions for a join, or read map outputs where they are."""


@frozen(kw_only=True)
class PlannedExchange:
    """An exchange that has not run: its expected bytes, -1 if unknown.

    `most` is the most bytes that it can have, None if unknown. `source` identifies the plan and the data that
    write it; what is learned about it is stored under this name.
    """

    id: str
    bytes: int
    source: str = ""
    most: int | None = None


@frozen(kw_only=True)
class InitialCount:
    """Ask how many partitions the exchanges of a group write; `planned` is Spark's own number.

    `pinned` says that a result above may depend on the number, such as a sample with a seed.
    """

    group: str
    exchanges: tuple[PlannedExchange, ...]
    planned: int
    slots: int = 0
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
    """The number of partitions, None for Spark's own."""

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

    All its exchanges have the same number of partitions. `left` says why the group is left to Spark. `kept`
    has the ends of the ranges that the plan was given before for about the same sizes; it is empty if they
    were Spark's.
    """

    group: str
    exchanges: tuple[WrittenExchange, ...]
    slots: int = 0
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
    """What one task reads: the partitions from `start` up to before `end`, of all exchanges of the group."""

    start: int
    end: int


@frozen(kw_only=True)
class RangesAnswer:
    """What each task reads, None for Spark's own choice."""

    group: str
    specs: tuple[Spec, ...] | None
    record: StageRecord


@frozen(kw_only=True)
class SplitSize:
    """Ask how many tasks share the files of a scan, and so how large its splits are.

    `bytes` are left to read after pruning, in `openings` stretches of files; each stretch counts for
    `smallest` bytes more. `planned` is Spark's own number of tasks. A split should have `smallest` to
    `largest` bytes, unless that gives more splits than sources may have, or than `most`: the number of files,
    if none can be split.
    """

    scan: str
    bytes: int
    openings: int = 0
    slots: int = 0
    planned: int
    smallest: int
    largest: int
    most: int | None = None


@frozen(kw_only=True)
class SplitSizeAnswer:
    """The number of tasks, None for Spark's own."""

    scan: str
    tasks: int | None
    record: StageRecord


@frozen(kw_only=True)
class SplitOffsets:
    """Ask for the minimum number of tasks in which a batch query reads Kafka.

    `late` says that its tasks themselves find out where its partitions end.
    """

    scan: str
    late: bool
    slots: int = 0


@frozen(kw_only=True)
class SplitOffsetsAnswer:
    """The minimum number of tasks, None for one per Kafka partition."""

    scan: str
    tasks: int | None
    record: StageRecord


@frozen(kw_only=True)
class JoinPartitions:
    """Ask how many tasks read a source that makes its own partitions, which Spark can only join.

    `source` is its kind of reader, such as that of Iceberg or of JDBC. `planned` is the number of its
    partitions, and `joinable` says that nothing above the scan relies on them.
    """

    scan: str
    source: str
    planned: int
    joinable: bool
    slots: int = 0


@frozen(kw_only=True)
class JoinPartitionsAnswer:
    """The number of tasks, None for one per partition of the source."""

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
