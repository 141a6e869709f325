"""Programs: a source, the steps on its rows, and the actions. Plain values, no Spark."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import field, frozen
from hypothesis.strategies import SearchStrategy


class Promise(enum.IntEnum):
    """Plain Spark's guarantee for a frame, whatever its partitions; larger values promise more."""

    NOTHING = 0
    COUNT = 1
    ROWS = 2
    ORDER = 3


@frozen
class Size:
    """Upper bounds: the number of rows, and the number of rows with the same id."""

    rows: int
    alike: int = 1


@frozen(kw_only=True)
class Kind:
    """A source or an operator: its text with `{0}`, `{1}` for its frames and `{name}` for its arguments.

    `promise` is the strongest guarantee after it. A `narrow` kind changes only columns, so a guarantee for
    the number of rows still holds after it; a `stable` one keeps the order. `counts`: it sets the number of
    partitions; `fails`: it may raise an error. `before` is text that must precede it.
    """

    name: str
    text: str
    frames: int = 0
    arguments: Mapping[str, SearchStrategy[Any]] = field(factory=dict)
    promise: Promise = Promise.ROWS
    narrow: bool = False
    stable: bool = False
    size: Callable[..., Size]
    fails: bool = False
    counts: bool = False
    before: str = ""


@frozen
class Step:
    """A kind with its arguments, on frames of other steps: the previous one, and `others`."""

    kind: Kind
    arguments: Mapping[str, Any] = field(factory=dict)
    others: tuple[Chain, ...] = ()


@frozen
class Chain:
    """A source and the steps on it, each on the result of the previous one."""

    steps: tuple[Step, ...]

    @property
    def kinds(self) -> Iterator[Kind]:
        """The kinds of all steps, including those of other chains."""
        for step in self.steps:
            yield step.kind
            for other in step.others:
                yield from other.kinds

    @property
    def size(self) -> Size:
        """The upper bounds of its size."""
        size = Size(0)
        for place, step in enumerate(self.steps):
            inputs = ([size] if place else []) + [other.size for other in step.others]
            size = step.kind.size(*inputs, **step.arguments)
        return size

    @property
    def largest(self) -> int:
        """The largest number of rows of any of its steps."""
        inner = [Chain(self.steps[: n + 1]).size.rows for n in range(len(self.steps))]
        return max(inner + [other.largest for step in self.steps for other in step.others])

    @property
    def promise(self) -> Promise:
        """Spark's guarantee for its rows."""
        promise = Promise.ROWS
        for step in self.steps:
            least = min([promise, *(other.promise for other in step.others)])
            own = step.kind.promise
            if own is Promise.ORDER:
                promise = Promise.ORDER if least >= Promise.ROWS else least
            elif least < Promise.ROWS:
                promise = least if step.kind.narrow and own >= Promise.ROWS else Promise.NOTHING
            elif least is Promise.ORDER and step.kind.stable:
                promise = own if own < Promise.ROWS else Promise.ORDER
            else:
                promise = min(own, Promise.ROWS)
        return promise

    @property
    def fails(self) -> bool:
        """Whether a part of it may raise an error."""
        return any(kind.fails for kind in self.kinds)

    @property
    def counts(self) -> bool:
        """Whether its last step sets the number of partitions."""
        return self.steps[-1].kind.counts


@frozen
class Action:
    """An action on a frame: a function of the harness, and its arguments after the frame."""

    name: str
    arguments: Mapping[str, Any] = field(factory=dict)
    depth: int = 0
    twice: bool = False

    def of(self, chain: Chain) -> Chain:
        """Return the part of a chain that the action uses: the last `depth` steps may be left out."""
        steps = chain.steps
        return Chain(steps[: max(1, len(steps) - self.depth)])


@frozen
class Program:
    """Settings, one chain, and actions on it, one after another or each in a thread."""

    chain: Chain
    actions: tuple[Action, ...]
    settings: tuple[tuple[str, str], ...] = ()
    threads: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Its parts: names of kinds and actions."""
        return frozenset(kind.name for kind in self.chain.kinds) | {action.name for action in self.actions}
