"""Stream operators: each takes frames with a key, an event time and a number, and returns such a frame."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from hypothesis import strategies as st

from integration.differential.program import Kind, Promise, Size

_ALL = ("append", "update", "complete")


@frozen(kw_only=True)
class Operator(Kind):
    """A kind of step in a stream.

    `modes` are the output modes that it supports. `stateful`: it has state. `timed`: its inputs need a
    watermark, except in the mode complete. `drops_time`: its result has none. `first`: nothing before it may
    have state. `last`: it is the last step. `unbatched`: no batch job is equivalent.
    """

    size: Any = lambda *_, **__: Size(0)
    modes: tuple[str, ...] = _ALL
    stateful: bool = False
    timed: bool = False
    drops_time: bool = False
    first: bool = False
    last: bool = False
    unbatched: bool = False


def _kind(name: str, text: str, frames: int = 0, **more: Any) -> Operator:
    known = {key: more.pop(key) for key in tuple(more) if not isinstance(more[key], st.SearchStrategy)}
    return Operator(name=name, text=text, frames=frames, arguments=more, **known)


_SECONDS = st.sampled_from([5, 10, 30])

#: What is read: `a`, `b` and so on are the inputs.
INPUT = _kind("input", "{letter}", letter=st.sampled_from(["a"]))
WATERMARK = _kind(
    "watermark",
    "{0}.withWatermark('t', '{delay} seconds')",
    delay=st.sampled_from([0, 5, 20, 5, 60]),
)
NARROW = [
    _kind("filter", "{0}.where('{what}')", what=st.sampled_from(["v % 3 > 0", "k > 1"])),
    _kind("column", "{0}.withColumn('v', F.expr('v * 2 + k'))"),
    _kind("explode", "{0}.selectExpr('k', 't', 'explode(array(v, v + 1000)) AS v')"),
    _kind("repartition", "{0}.repartition({n}, 'k')", n=st.sampled_from([2, 3])),
]
_AGGREGATED = ".agg(F.expr('{what}').alias('v')).select('k', F.window_time('w').alias('t'), 'v')"
_WHAT = st.sampled_from(["sum(v)", "count(*)", "max(v)"])
_BEHIND_WATERMARK = ("append", "update")
AGGREGATES = [
    _kind(
        "windows",
        "{0}.groupBy(F.window('t', '{n} seconds').alias('w'), 'k')" + _AGGREGATED,
        stateful=True,
        timed=True,
        n=_SECONDS,
        what=_WHAT,
    ),
    _kind(
        "sliding windows",
        "{0}.groupBy(F.window('t', '{n} seconds', '5 seconds').alias('w'), 'k')" + _AGGREGATED,
        stateful=True,
        timed=True,
        n=_SECONDS,
        what=_WHAT,
    ),
    _kind(
        "sessions",
        "{0}.groupBy(F.session_window('t', '{n} seconds').alias('w'), 'k')" + _AGGREGATED,
        modes=("append", "complete"),
        stateful=True,
        timed=True,
        n=_SECONDS,
        what=_WHAT,
    ),
    _kind(
        "windows of all keys",
        "{0}.groupBy(F.window('t', '{n} seconds').alias('w')).agg(F.sum('v').alias('v'))"
        ".select(F.lit(0).alias('k'), F.window_time('w').alias('t'), 'v')",
        stateful=True,
        timed=True,
        n=_SECONDS,
    ),
    _kind(
        "totals",
        "{0}.groupBy('k').agg(F.max('t').alias('t'), F.expr('{what}').alias('v'))",
        modes=("update", "complete"),
        stateful=True,
        drops_time=True,
        what=_WHAT,
    ),
    _kind(
        "total of all",
        "{0}.agg(F.max('t').alias('t'), F.sum('v').alias('v')).select(F.lit(0).alias('k'), 't', 'v')",
        modes=("update", "complete"),
        stateful=True,
        drops_time=True,
    ),
]
STATEFUL = [
    # Spark may keep either of two rows of one micro-batch, so no other column is shown.
    _kind(
        "duplicates dropped",
        "{0}.dropDuplicates(['k', 't']).withColumn('v', F.lit(1).cast('long'))",
        modes=_BEHIND_WATERMARK,
        stateful=True,
    ),
    _kind(
        "duplicates dropped within the watermark",
        "{0}.dropDuplicatesWithinWatermark(['k', 't']).withColumn('v', F.lit(1).cast('long'))",
        unbatched=True,
        modes=_BEHIND_WATERMARK,
        stateful=True,
        timed=True,
    ),
    _kind(
        "distinct",
        "{0}.select('k', 't').distinct().withColumn('v', F.lit(1).cast('long'))",
        modes=_BEHIND_WATERMARK,
        stateful=True,
    ),
]
_NEAR = "l.k = r.k AND r.t BETWEEN l.t - INTERVAL {n} SECONDS AND l.t + INTERVAL {n} SECONDS"
_JOINED = "{0}.alias('l').join({1}.alias('r'), F.expr('" + _NEAR + "'), '{how}').selectExpr("
_SUM = "'coalesce(l.v, 0) * 1000 + coalesce(r.v, 0) AS v')"


def _join(name: str, columns: str, *ways: str, **more: Any) -> Operator:
    how = st.sampled_from(ways)
    known = {"modes": ("append",), "stateful": True, "timed": True, **more}
    return _kind(name, _JOINED + columns, 1, n=_SECONDS, how=how, **known)


TOGETHER = [
    _kind("union", "{0}.union({1})", 1),
    _join("join", "'l.k AS k', 'l.t AS t', " + _SUM, "inner", "left"),
    _join("right join", "'coalesce(l.k, r.k) AS k', 'r.t AS t', " + _SUM, "right"),
    _join(
        "full join", "'coalesce(l.k, r.k) AS k', 'coalesce(l.t, r.t) AS t', " + _SUM, "full", drops_time=True
    ),
    _join("semi join", "'k', 't', 'v')", "left_semi"),
    _kind(
        "join without an end",
        "{0}.alias('l').join({1}.alias('r'), 'k').selectExpr('k', 'l.t AS t', 'l.v * 1000 + r.v AS v')",
        1,
        modes=("append",),
        stateful=True,
    ),
]
WITH_ITSELF = [
    # Everything before it runs twice.
    _kind("union with itself", "{0}.union({0}.withColumn('v', F.expr('v + 1')))", first=True),
    _kind(
        "join with itself",
        _JOINED.replace("{1}", "{0}") + "'l.k AS k', 'l.t AS t', " + _SUM,
        first=True,
        modes=("append",),
        stateful=True,
        timed=True,
        n=_SECONDS,
        how=st.just("inner"),
    ),
]
_STATE = """\
def counted(key, frames, state):
    number = (state.get[0] if state.exists else 0) + sum(map(len, frames))
    if state.hasTimedOut:
        state.remove()
        yield pandas.DataFrame({{'k': [key[0]], 'v': [number]}})
    else:
        state.update((number,))
        state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 15_000)
"""
_PROCESSOR = """\
from pyspark.sql.streaming import StatefulProcessor
class Counted(StatefulProcessor):
    def init(self, handle):
        self.handle, self.number = handle, handle.getValueState('number', 'n long')
        self.times = handle.getListState('times', 't long')
        self.by_digit = handle.getMapState('by_digit', 'd long', 'n long')
    def handleInputRows(self, key, rows, timerValues):
        values = sorted(int(v) for frame in rows for v in frame['v'])
        self.number.update(((self.number.get()[0] if self.number.exists() else 0) + len(values),))
        for value in values:
            self.times.appendValue((value,))
            digit = (value % 3,)
            seen = self.by_digit.getValue(digit)[0] if self.by_digit.containsKey(digit) else 0
            self.by_digit.updateValue(digit, (seen + 1,))
        self.handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 15_000)
        yield self.known(key)
    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield self.known(key)
        self.number.clear()
        self.times.clear()
    def known(self, key):
        number = self.number.get()[0] if self.number.exists() else 0
        most = max((n for _, (n,) in self.by_digit.iterator()), default=0)
        total = sum(value for (value,) in self.times.get())
        return pandas.DataFrame({{'k': [key[0]], 'v': [total * 1_000_000 + number * 1000 + most]}})
    def close(self):
        pass
# The only store that has it.
spark.conf.set('spark.sql.streaming.stateStore.providerClass',
    'org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider')
# Without it the state cannot be moved.
spark.conf.set('spark.sql.streaming.stateStore.checkpointFormatVersion', '2')
"""


def _of_a_key(name: str, call: str, before: str, mode: str) -> Operator:
    """Return a kind that runs user code over the rows and the state of each key."""
    return _kind(
        name,
        "{0}.groupBy('k')." + call + ".selectExpr('k', 'CAST(NULL AS TIMESTAMP) AS t', 'v')",
        modes=(mode,),
        stateful=True,
        timed=True,
        drops_time=True,
        first=True,
        last=True,
        unbatched=True,
        before=before,
    )


LAST = [
    _of_a_key(
        "groups with state",
        "applyInPandasWithState(counted, 'k long, v long', 'n long', 'append', 'EventTimeTimeout')",
        _STATE,
        "append",
    ),
    *(
        _of_a_key(
            f"transform with state {mode}",
            f"transformWithStateInPandas(Counted(), 'k long, v long', '{mode.capitalize()}', 'EventTime')",
            _PROCESSOR,
            mode,
        )
        for mode in ("append", "update")
    ),
    # Spark may choose any of the rows.
    _kind(
        "limit",
        "{0}.limit({n})",
        modes=("append",),
        stateful=True,
        drops_time=True,
        first=True,
        last=True,
        promise=Promise.COUNT,
        n=st.sampled_from([5, 1]),
    ),
]
OPERATORS = [WATERMARK, *NARROW, *AGGREGATES, *STATEFUL, *TOGETHER, *WITH_ITSELF, *LAST]
