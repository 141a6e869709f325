"""What every policy is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from attrs import field, frozen
from attrs.validators import ge, optional

from spark_elastic.core.actions import Action
from spark_elastic.core.events import Event
from spark_elastic.core.policies.view import ClusterView, SlotLimits
from spark_elastic.core.turn import Number

# What a policy has found out about a query: what its decision is told with, and what can be looked at.


@frozen(kw_only=True)
class Outlook:
    """What one query needs slots for, with those that it has.

    So many `rows_per_second` come in. The last micro-batch took `batch_ms`; one takes `fixed_ms`, and
    `row_us` microseconds of one slot for each row, which can be trusted with a `confidence` from 0 to 1.
    Batches take the part `load` of their time (0 and up) and are to take `target_load` (above 0, up to 1). A
    change of its slots makes it stand still for `pause_ms`. Its sources have `behind` rows that it has not
    read, None if that is not known. `backlog` rows have piled up, None: none to speak of; they are to be gone
    within `within_ms`, and will be in `gone_in_ms`, None: with these slots they never are.
    """

    rows_per_second: float
    batch_ms: int
    fixed_ms: float
    row_us: float
    confidence: float
    load: float
    target_load: float
    pause_ms: float
    behind: int | None = None
    backlog: float | None = None
    within_ms: int | None = None
    gone_in_ms: float | None = None

    def numbers(self) -> dict[str, Number]:
        """Return what is known under the names that the sentences of policies have for it."""
        known: dict[str, Number | None] = {
            "rows_per_second": round(self.rows_per_second, 1),
            "batch_ms": self.batch_ms,
            "fixed_ms": round(self.fixed_ms, 1),
            "row_us": round(self.row_us, 3),
            "confidence": round(self.confidence, 2),
            "load_percent": round(100 * self.load),
            "target_percent": round(100 * self.target_load),
            "pause_ms": self.pause_ms,
            "behind": self.behind,
            "piled_up": None if self.backlog is None else round(self.backlog),
            "within_ms": self.within_ms,
            "gone_in_ms": None if self.gone_in_ms is None else round(self.gone_in_ms),
        }
        return {name: value for name, value in known.items() if value is not None}


# What a policy wants: slots for queries, with the reason, and limits for them.


@frozen(kw_only=True)
class QueryWish:
    """So many `slots` (1 or more) for one query.

    `reason` is a key of ``core/reasons/catalogue.py`` whose sentence the `numbers` fill, with those of the
    `outlook`: what the policy goes by, None if it does not say. `until` is when the policy is to be asked
    again at the latest (epoch ms), None: when something has happened. `unsmoothed` are the slots for which
    the metrics of now alone call, None: as many; the view shows them later as `wanted`, with the
    `rows_per_ms` that they were for, None: not for a rate. `most_rows` are those that one of its
    micro-batches should read at most, None: all that there are. Raises ValueError for fewer than 1 slot or
    row.
    """

    slots: int = field(validator=ge(1))
    reason: str
    numbers: Mapping[str, Number] = field(factory=dict)
    until: int | None = None
    unsmoothed: int | None = field(default=None, validator=optional(ge(1)))
    rows_per_ms: float | None = None
    most_rows: int | None = field(default=None, validator=optional(ge(1)))
    outlook: Outlook | None = None

    @property
    def told(self) -> dict[str, Number]:
        """All numbers that the decision is told with."""
        return {**self.numbers} if self.outlook is None else {**self.outlook.numbers(), **self.numbers}


@frozen(kw_only=True)
class BatchWish:
    """So many `executors` for batch stages, beside those of the queries (0 or more).

    `reason` is a key of ``core/reasons/catalogue.py`` whose sentence the `numbers` fill. `unsmoothed` are
    those for which the metrics of now alone call, None: as many. Raises ValueError for fewer than 0
    executors.
    """

    executors: int = field(validator=ge(0))
    reason: str
    numbers: Mapping[str, Number] = field(factory=dict)
    unsmoothed: int | None = field(default=None, validator=optional(ge(0)))


@frozen(kw_only=True)
class Wish:
    """What a policy wants for queries, by id.

    Of one that is not in `queries` it wants no number of slots: then the one that a policy before it wanted
    counts, or `limits` alone, or else its declared bounds. `limits` are what a query may have, in the order
    in which they count. `executors` is the least number of executors in all, None: as many as the slots of
    the queries need; `executors_by` says who wants them, such as "the window morning". `until` is when the
    policy is to be asked again at the latest, whatever the queries do (epoch ms), None: when something has
    happened. `batch` are those that batch stages should have beside them, None: the policy does not look at
    any.
    """

    queries: Mapping[str, QueryWish] = field(factory=dict)
    limits: Mapping[str, tuple[SlotLimits, ...]] = field(factory=dict)
    executors: int | None = field(default=None, validator=optional(ge(0)))
    executors_by: str = "a policy"
    until: int | None = None
    batch: BatchWish | None = None


class Policy(Protocol):
    """Decides what the queries of an application should have.

    It is a pure function: the same view gives the same wish, and nothing is kept between two of them. What it
    has to remember is in the view: what was wanted, granted and applied before.

    A wish has numbers of slots, limits for them, or both. Policies form a chain (`chain.py`): each sees the
    view with the limits that those before it have stated, and of several that want a number of slots for a
    query the last one decides. Limits stand behind each (`limits.py`), so it need not keep to any: neither a
    number nor a limit goes beyond what is declared for a query or stated before, and what goes further is
    granted as far as it may be, with the reason.
    """

    def decide(self, view: ClusterView) -> Wish:
        """Return what is wanted now."""
        ...


# How a custom policy is asked: by an action, and its answer is an event.
# So the code of others runs neither in the core nor in the thread of the loop, and what it has said is in the
# journal: who reads that needs none of it.


@frozen(kw_only=True)
class AskPolicy(Action):
    """Ask the custom policy of this name what it wants.

    The `view` follows from the events before it, so it is not written down: one that was read has None.
    """

    policy: str
    view: ClusterView | None = field(default=None, eq=False, repr=False)


@frozen(kw_only=True)
class PolicyAnswered(Event):
    """What a custom policy wants that was asked with the action of the id `asked`.

    `error` says in one line why there is no answer that could be used, None: there is one. `took_ms` is how
    long it was waited for.
    """

    policy: str
    asked: str
    wish: Wish | None = None
    error: str | None = None
    took_ms: int = 0
