"""What is remembered of batch stages for the policies, and what was last said of them."""

from __future__ import annotations

from attrs import define

from spark_elastic.core import reasons
from spark_elastic.core.batch_events import BatchStage, BatchStages
from spark_elastic.core.cluster.executors import BatchDemand
from spark_elastic.core.load.batch_work import Pace
from spark_elastic.core.policies.custom import SPOKEN_OF_BATCH
from spark_elastic.core.policies.view import BatchMetrics
from spark_elastic.core.policies.wish import BatchWish
from spark_elastic.core.rescale.situation import HORIZON_MS
from spark_elastic.core.turn import Number, Turn

_HELD_MS = 5_000
"""For so long the most that was wanted counts: jobs have pauses between their stages."""

_SILENT_MS = 15_000
"""What is told of every 10 s at least, and was told longer ago, is over: somebody has missed the end."""

_REPEAT_MS = 60_000
"""The shortest time after which it is said that no more or fewer executors are wanted."""

_QUIET_MS = 600_000
"""The same where it is between reasons that small jobs go to and fro between."""

_AT_ONCE = frozenset({"batch_first", "batch_up", SPOKEN_OF_BATCH})
_QUIET = frozenset({"batch_keeps", "batch_held", "batch_over"})
_OVER = 20


@define(kw_only=True)
class BatchMemory:
    """Batch stages: `stages` are those of now, as of `at` (epoch ms), `over` the last ones that ended.

    `idle` are the executors that run none of their tasks. `crowded_ms`, `row`, `row_ms` and `active` are as
    in `BatchMetrics`. `wanted` has when the metrics alone called for so many executors (epoch ms), the newest
    last, and `executors` are those that were wanted in the end. `told` is what was published last, reason and
    executors, and `told_at` when. `seen` says that there has been a stage.
    """

    seen: bool = False
    stages: tuple[BatchStage, ...] = ()
    at: int = 0
    over: tuple[BatchStage, ...] = ()
    idle: frozenset[str] = frozenset()
    crowded_ms: int = 0
    row: int = 0
    row_ms: float = 0.0
    active: bool = False
    wanted: tuple[tuple[int, int], ...] = ()
    executors: int = 0
    told: tuple[str, int] | None = None
    told_at: int = 0

    def begin(self) -> None:
        """Note that nobody knows what has become of the stages: those that still run are told of again."""
        self.stages, self.idle = (), frozenset()

    def take(self, event: BatchStages) -> None:
        """Take in the stages of now."""
        since = max(0, event.at - self.at)
        if any(stage.waiting for stage in self.stages):
            self.crowded_ms = min(HORIZON_MS, self.crowded_ms + min(since, _SILENT_MS))
        else:
            self.crowded_ms = max(0, self.crowded_ms - since)
        here = {stage.stage for stage in event.stages}
        gone = tuple(stage for stage in self.stages if stage.stage not in here)
        self.over = (*self.over, *gone)[-_OVER:]
        self.row += event.over
        self.row_ms += sum(map(Pace.whole_ms, gone))
        if not self.crowded_ms:
            self.row, self.row_ms = 0, 0.0
        self.stages, self.idle, self.at = event.stages, frozenset(event.idle), event.at
        self.active = self.active or bool(event.stages) or event.over > 0
        self.seen = self.seen or self.active

    @property
    def busy(self) -> bool:
        """Whether tasks of batch stages run beside those of the queries."""
        return any(stage.running for stage in self.stages)

    @property
    def demand(self) -> BatchDemand:
        """What the supply of executors goes by."""
        return BatchDemand(executors=self.executors, idle=self.idle, written_ms=self.pace.written_ms or 0.0)

    @property
    def pace(self) -> Pace:
        """What their tasks have taken so far."""
        return Pace.of((*self.over, *self.stages))

    @property
    def until(self) -> int | None:
        """When less may be wanted though nothing happens (epoch ms), None: never."""
        if not (self.wanted or self.stages):
            return None  # as in each application without batch stages, and each event asks
        times = [at for at, executors in self.wanted if executors == self.executors > 0]
        ends = [self.at + _SILENT_MS] if self.stages else []
        if times and not (self.stages and self.wanted[-1][1] == self.executors):
            ends.append(max(times) + _HELD_MS)
        return min(ends, default=None)

    def metrics(self, at: int) -> BatchMetrics | None:
        """Show a policy what there is, None as long as there has been no stage."""
        if not self.seen:
            return None
        if at >= self.at + _SILENT_MS:
            self.begin()
        pace = self.pace
        return BatchMetrics(
            stages=self.stages,
            work_ms=sum(pace.work_ms(stage, at) for stage in self.stages),
            crowded_ms=self.crowded_ms,
            row=self.row,
            row_ms=self.row_ms,
            active=self.active or bool(self.stages),
            executors=self.executors,
            peak=self._peak(at),
        )

    def _peak(self, at: int) -> int:
        return max((executors for when, executors in self.wanted if when > at - _HELD_MS), default=0)

    def wants(self, wish: BatchWish, turn: Turn) -> None:
        """Note what is wanted, and publish it if that is something else than before."""
        before, self.executors, self.active = self.executors, wish.executors, False
        recent = [one for one in self.wanted if one[0] > turn.now - _HELD_MS]
        raw = wish.executors if wish.unsmoothed is None else wish.unsmoothed
        self.wanted = (*recent, (turn.now, raw))
        told = (wish.reason, wish.executors)
        if told == self.told or turn.now < self.told_at + self._patience_ms(wish.reason):
            return
        self.told, self.told_at = told, turn.now
        numbers: dict[str, Number] = {**wish.numbers, "slots": turn.slots}
        said = reasons.message(wish.reason, **numbers, before=before, after=wish.executors)
        said = reasons.advised(said, only=turn.settings.advise_only)
        turn.publish(wish.reason, said, query=None, before=before, after=wish.executors, numbers=numbers)

    def _patience_ms(self, reason: str) -> int:
        """Tell how long nothing is said after what was said last; more executors are said at once."""
        if reason in _AT_ONCE:
            return 0
        return _QUIET_MS if self.told is not None and {self.told[0], reason} <= _QUIET else _REPEAT_MS

    def validate(self) -> None:
        """Check that it is bounded. Raises AssertionError."""
        assert len(self.over) <= _OVER
        assert 0 <= self.crowded_ms <= HORIZON_MS
        assert [at for at, _ in self.wanted] == sorted(at for at, _ in self.wanted)
