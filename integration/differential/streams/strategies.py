"""Hypothesis strategies for streams; a failing program shrinks toward the first element of each list."""

from __future__ import annotations

from attrs import evolve, frozen
from hypothesis import strategies as st

from integration.differential.program import Chain, Step
from integration.differential.settings import Setting
from integration.differential.streams.harness import Rows
from integration.differential.streams.operators import (
    AGGREGATES,
    INPUT,
    LAST,
    NARROW,
    STATEFUL,
    TOGETHER,
    WATERMARK,
    WITH_ITSELF,
    Operator,
)
from integration.differential.streams.program import HAND_OVER, LETTERS, Moment, Stream

#: The partition counts to which state may move; the slots suffice for all of them.
PARTITIONS = (3, 1, 2, 4)
#: The progress (s) of most rows' event time from one step to the next.
_PACE = 20
_STATE = "spark.sql.streaming.stateStore"
_SHUFFLE = Setting("spark.sql.shuffle.partitions", st.sampled_from(["3", "1", "5"]))
SETTINGS = [
    Setting(key, st.sampled_from(values))
    for key, *values in (
        ("spark.sql.streaming.multipleWatermarkPolicy", "max"),
        ("spark.sql.streaming.noDataMicroBatches.enabled", "false"),
        ("spark.sql.streaming.minBatchesToRetain", "1", "2"),
        ("spark.sql.streaming.aggregation.stateFormatVersion", "1"),
        ("spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition", "true"),
        (f"{_STATE}.minDeltasForSnapshot", "1"),
        (f"{_STATE}.rocksdb.changelogCheckpointing.enabled", "true", "false"),
        (f"{_STATE}.maintenanceInterval", "100ms"),
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan", "true"),
    )
]


@frozen
class _Frame:
    """A frame under construction: its steps, whether its time has a watermark, number of stateful steps."""

    steps: tuple[Step, ...]
    timed: bool
    stateful: int = 0
    has_ended: bool = False

    def takes(self, kind: Operator, mode: str, others: tuple[_Frame, ...] = ()) -> bool:
        """Return whether Spark allows a step of this kind next."""
        state = self.stateful + sum(other.stateful for other in others)
        return (
            mode in kind.modes
            and not self.has_ended
            and (
                not kind.timed or mode == "complete" or (self.timed and all(other.timed for other in others))
            )
            # Stateful steps may follow one another only in append mode, on a time with a watermark.
            and (not kind.stateful or state == 0 or (mode == "append" and self.timed))
            and not (kind.first and state > 0)
        )

    def then(self, step: Step, others: tuple[_Frame, ...] = ()) -> _Frame:
        kind = step.kind
        assert isinstance(kind, Operator)
        return _Frame(
            (*self.steps, evolve(step, others=tuple(Chain(other.steps) for other in others))),
            self.timed and not kind.drops_time and all(other.timed for other in others),
            self.stateful + sum(other.stateful for other in others) + kind.stateful,
            kind.last,
        )


def _step(draw: st.DrawFn, kind: Operator) -> Step:
    return Step(kind, {name: draw(values) for name, values in kind.arguments.items()})


def _input(draw: st.DrawFn, number: int, timed: bool) -> _Frame:
    frame = _Frame((Step(INPUT, {"letter": LETTERS[number]}),), timed)
    return frame.then(_step(draw, WATERMARK)) if timed else frame


#: The steps after the inputs.
_WANTED = [
    [],
    [AGGREGATES],
    [NARROW, AGGREGATES],
    [STATEFUL],
    [STATEFUL, AGGREGATES],
    [AGGREGATES, NARROW, AGGREGATES],
    [AGGREGATES],
    [AGGREGATES, STATEFUL],
    [WITH_ITSELF],
    [WITH_ITSELF, AGGREGATES],
    [NARROW, LAST],
]


@st.composite
def _chains(draw: st.DrawFn, inputs: int, mode: str) -> Chain:
    # Most programs test watermarks.
    timed = draw(st.sampled_from([True, True, True, False]))
    frame = _input(draw, 0, timed)
    for number in range(1, inputs):
        side = _input(draw, number, timed)
        for kind in draw(st.lists(st.sampled_from(NARROW), max_size=1)):
            side = side.then(_step(draw, kind))
        fitting = [kind for kind in TOGETHER if frame.takes(kind, mode, (side,))]
        frame = frame.then(_step(draw, draw(st.sampled_from(fitting))), (side,))
    wanted = [AGGREGATES] if mode == "complete" else draw(st.sampled_from(_WANTED))
    for kinds in wanted:
        fitting = [kind for kind in kinds if frame.takes(kind, mode)]
        if fitting:
            frame = frame.then(_step(draw, draw(st.sampled_from(fitting))))
    return Chain(frame.steps)


@frozen
class _Clock:
    """The event time of an input: how far (s) it is ahead, and whether it is sometimes idle."""

    ahead: int
    idle: bool


_CLOCKS = st.builds(_Clock, st.sampled_from([0, 15, 1000]), st.booleans())


def _files(draw: st.DrawFn, clock: _Clock, step: int) -> Rows:
    """Return the rows of a file, some of them late; no rows mean no file."""
    if clock.idle and step > 0 and draw(st.sampled_from([True, True, False])):
        return []
    late = draw(st.sampled_from([0, 0, 0, 0, 40, 100]))
    from_ = max(0, step * _PACE - late) + clock.ahead
    times = st.integers(0, _PACE - 1).map(lambda s: from_ + s)
    return draw(st.lists(st.tuples(st.integers(1, 4), times), min_size=1, max_size=4))


_BETWEEN = ["", "move", "move_within", "fail", "restart", "move", "move_within", "savepoint", "", "move"]


def _between(draw: st.DrawFn, lost: bool) -> list[Moment]:
    """Return the events between two steps."""
    name = draw(st.sampled_from([*_BETWEEN, *["lose", "lose_within"] * (4 if lost else 0)]))
    if not name:
        return []
    return [Moment(name, (draw(st.sampled_from(PARTITIONS)),) if name.startswith("move") else ())]


@st.composite
def streams(draw: st.DrawFn, *, lost: bool = False) -> Stream:
    """Return programs that take some seconds; `lost`: they may lose executors."""
    inputs = draw(st.sampled_from([1, 2, 2, 3]))
    mode = draw(st.sampled_from(["append", "append", "append", "update", "complete"]))
    chain = draw(_chains(inputs, mode))
    trigger = draw(st.sampled_from(["processingTime"] * 7 + ["availableNow"]))
    # Spark's own file sink requires consecutive batch ids, and supports only append mode.
    into = draw(st.sampled_from(["foreachBatch"] * 4 + ["files"])) if mode == "append" else "foreachBatch"
    clocks = [draw(_CLOCKS) for _ in range(inputs)]
    moments: list[Moment] = []
    steps = draw(st.integers(2, 5))
    # Plain Spark begins some of the programs, in its own store.
    begun = 0 if lost else draw(st.sampled_from([*[0] * 5, *range(1, steps)]))
    for number in range(steps):
        if number > 0 and number == begun:
            moments.append(HAND_OVER)
        elif number > begun and trigger != "availableNow":
            moments += _between(draw, lost)
        waves = draw(st.sampled_from([1, 1, 1, 2]))
        files = tuple([_files(draw, clock, number) for clock in clocks] for _ in range(waves))
        moments.append(Moment("step", files))
    chosen = [_SHUFFLE, *draw(st.lists(st.sampled_from(SETTINGS), max_size=2, unique_by=lambda s: s.key))]
    settings = tuple((setting.key, draw(setting.values)) for setting in chosen)
    return Stream(chain, inputs, tuple(moments), mode, trigger, settings, into)
