"""Hypothesis strategies for programs; a failing program shrinks toward the first element of each list."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from integration.differential.operators import FAILING, LOOSE, NARROW, PLACED, WITH_PYTHON
from integration.differential.program import Action, Chain, Kind, Program, Promise, Step
from integration.differential.script import again
from integration.differential.settings import SETTINGS
from integration.differential.sources import SOURCES
from integration.differential.wide import JOINS, WIDE

MOST_ROWS = 200_000
#: More rows are not collected into Python.
_COLLECTED = 10_000
#: Actions on few rows only.
ACTIONS = ("collected", "written", "as_pandas", "iterated")
#: Output formats.
FORMS = ("parquet", "csv", "json", "orc")
_OF_MANY = ("split", "summed", "counted", "taken")

#: Each of these starts a process for each slot, so a program has at most one of them.
_PROCESSES = frozenset(kind.name for kind in WITH_PYTHON) | {
    "RDD",
    "Python source",
    "Python error",
    "numbered rows",
    "zip",
    "attached index",
}
#: Limit of the steps that all actions together run: more take longer than they are worth.
_MOST_WORK = 30
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_JOBS = {"split": 4, "written": 2, "partitions": 2, "placed": 2, "iterated": 2}


def _some(kinds: Sequence[Kind]) -> st.SearchStrategy[Step]:
    return st.sampled_from(kinds).flatmap(_step)


@st.composite
def _step(draw: st.DrawFn, kind: Kind) -> Step:
    arguments = {name: draw(values) for name, values in kind.arguments.items()}
    others = tuple(draw(_SIDE) for _ in range(kind.frames))
    return Step(kind, arguments, others)


_SOURCE = _some(SOURCES)
_ALONE = [kind for kind in NARROW + WIDE + PLACED + WITH_PYTHON if not kind.frames]
_SIDE = st.builds(lambda source, steps: Chain((source, *steps)), _SOURCE, st.lists(_some(_ALONE), max_size=1))
_ANY = st.one_of(*map(_some, (WIDE, NARROW, PLACED, JOINS, LOOSE)), _some(WITH_PYTHON))
_LAST = st.one_of(st.just(()), st.just(()), st.just(()), st.tuples(_some(FAILING)), st.tuples(_some(PLACED)))


@st.composite
def _action(draw: st.DrawFn, chain: Chain, written: Sequence[str]) -> Action:
    depth = draw(st.sampled_from([0, 0, 0, 1, 2]))
    asked = Action("", depth=depth).of(chain)
    forms = [*_OF_MANY]
    if asked.size.rows <= _COLLECTED:
        forms = [*ACTIONS, *_OF_MANY]
        if asked.counts:
            forms += ["partitions"] * 3
            if asked.promise >= Promise.ROWS and asked.steps[-1].kind.name == "repartition by key":
                forms += ["placed"] * 3
    name = draw(st.sampled_from(forms))
    arguments: dict[str, Any] = {}
    if name == "taken":
        arguments = {"number": draw(st.sampled_from([1, 10, 500]))}
    elif name == "split":
        arguments = {"weights": draw(st.sampled_from([[0.7, 0.3], [0.2, 0.3, 0.5]])), "seed": 5}
    elif name == "written":
        form = draw(st.sampled_from(written))
        arguments = {"form": form, "by": draw(st.sampled_from([None, None, "k"]))}
    return Action(name, arguments, depth, draw(st.sampled_from([False, False, True])))


def _work(chain: Chain, action: Action) -> int:
    """Return the number of steps that an action runs, counting repetitions."""
    part = action.of(chain)
    return sum(1 for _ in part.kinds) * _JOBS.get(action.name, 1) * (1 + again(part, action))


@st.composite
def programs(draw: st.DrawFn, *, sources: Sequence[Kind] = SOURCES, forms: Sequence[str] = FORMS) -> Program:
    """Return programs of about a second that read one of the sources and may write these formats."""
    first, steps, last = draw(_some(sources)), draw(st.lists(_ANY, max_size=4)), draw(_LAST)
    chain = Chain((first, *steps, *last))
    assume(chain.largest <= MOST_ROWS)
    processes = sum(kind.name in _PROCESSES for kind in chain.kinds)
    assume(processes == 0 or (processes == 1 and chain.largest <= _COLLECTED))
    actions = draw(st.lists(_action(chain, forms), min_size=1, max_size=3))
    assume(sum(map(partial(_work, chain), actions)) <= _MOST_WORK)
    chosen = draw(st.lists(st.sampled_from(SETTINGS), max_size=3, unique_by=lambda setting: setting.key))
    settings = tuple((setting.key, draw(setting.values)) for setting in chosen)
    if draw(st.sampled_from([False, False, True])) and _ADVISORY not in dict(settings):
        # With this, few rows justify several tasks, as usually only many do.
        settings += ((_ADVISORY, "10k"),)
    if ("spark.sql.adaptive.enabled", "false") in settings:
        # Partitions are not coalesced then, and 200 tasks for some rows take longer than they are worth here.
        settings += (("spark.sql.shuffle.partitions", "5"),)
    threads = len(actions) > 1 and draw(st.booleans())
    return Program(chain, tuple(actions), settings, threads)
