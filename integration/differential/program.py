"""Programs: a source, what is done with its rows, and what is asked of them. Plain values, no Spark."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import field, frozen
from hypothesis.strategies import SearchStrategy


class Promise(enum.IntEnum):
    """What plain Spark promises of a frame whatever its partitions are: the more, the larger."""

    NOTHING = 0
    COUNT = 1
    ROWS = 2
    ORDER = 3


@frozen
class Size:
    """How many rows there may be at most, how many of them with one id, and how many partitions to write."""

    rows: int
    alike: int = 1


@frozen(kw_only=True)
class Kind:
    """A source or an operator: its text with `{0}`, `{1}` for its frames and `{name}` for its arguments.

    `promise` is the most that holds behind it. A `narrow` one changes only columns: what is promised of the
    number of rows holds behind it, too; a `stable` one keeps the order. `counts`: it names the number of
    partitions; `fails`: it may raise an error. `before` is text that has to stand before.
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
    """A kind with its arguments, on frames of other steps: `others` are those beside the one before."""

    kind: Kind
    arguments: Mapping[str, Any] = field(factory=dict)
    others: tuple[Chain, ...] = ()


@frozen
class Chain:
    """A source and what is done with it, one step on the other."""

    steps: tuple[Step, ...]

    @property
    def kinds(self) -> Iterator[Kind]:
        """The kinds of all steps, those of other chains among them."""
        for step in self.steps:
            yield step.kind
            for other in step.others:
                yield from other.kinds

    @property
    def size(self) -> Size:
        """How large it is at most."""
        size = Size(0)
        for place, step in enumerate(self.steps):
            inputs = ([size] if place else []) + [other.size for other in step.others]
            size = step.kind.size(*inputs, **step.arguments)
        return size

    @property
    def largest(self) -> int:
        """The most rows that any of its steps has."""
        inner = [Chain(self.steps[: n + 1]).size.rows for n in range(len(self.steps))]
        return max(inner + [other.largest for step in self.steps for other in step.others])

    @property
    def promise(self) -> Promise:
        """What Spark promises of its rows."""
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
        """Whether something in it may raise an error."""
        return any(kind.fails for kind in self.kinds)

    @property
    def counts(self) -> bool:
        """Whether its last step names the number of partitions."""
        return self.steps[-1].kind.counts


@frozen
class Action:
    """What is asked of a frame: a function of the harness, and its arguments behind the frame."""

    name: str
    arguments: Mapping[str, Any] = field(factory=dict)
    depth: int = 0
    twice: bool = False

    def of(self, chain: Chain) -> Chain:
        """Return the part of a chain that is asked: the last `depth` steps may be left out."""
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
        """What it is made of: names of kinds and actions."""
        return frozenset(kind.name for kind in self.chain.kinds) | {action.name for action in self.actions}
