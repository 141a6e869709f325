"""The interface of every policy, and the wishes that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from attrs import field, frozen
from attrs.validators import ge, optional

from spark_elastic.core.actions import Action
from spark_elastic.core.events import Event
from spark_elastic.core.policies.view import ClusterView, SlotLimits
from spark_elastic.core.turn import Number

# ---- What a policy has found out about a query. It is reported with the decision, and can be inspected.


@frozen(kw_only=True)
class Outlook:
    """What one query needs slots for, given the slots that it has.

    Rows arrive at `rows_per_second`. The last micro-batch took `batch_ms`. A micro-batch takes `fixed_ms`,
    plus `row_us` microseconds of one slot per row; `confidence` (0 to 1) says how far that can be trusted.
    Micro-batches take the part `load` of their time (0 and up) and should take `target_load` (above 0, up to
    1). A change of its slots pauses the query for `pause_ms`. Its sources have `behind` rows that it has not
    read, None if unknown. `backlog` rows have piled up, None if negligible. They should be processed within
    `within_ms`, and will be in `gone_in_ms`, None if these slots never catch up.
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
        """Return the values that are known, under the names that the sentences of policies use."""
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


# ---- What a policy wants: slots and limits for queries, with the reason.


@frozen(kw_only=True)
class QueryWish:
    """The `slots` that a policy wants for one query (1 or more).

    `reason` is a key of ``core/reasons/catalogue.py``; the `numbers` and those of the `outlook` fill its
    sentence. The `outlook` is the basis of the policy's decision, None if it does not say. `until` is the
    latest time to ask the policy again (epoch ms), None to wait for the next event. `unsmoothed` is the
    number of slots that the current metrics alone call for, None if that is `slots`. The view later shows it
    as `wanted`, with the `rows_per_ms` that it was for, None if not for a rate. `most_rows` is the most rows
    that one of the query's micro-batches should read, None for no limit. Raises ValueError for fewer than 1
    slot or row.
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
        """All numbers that are reported with the decision."""
        return {**self.numbers} if self.outlook is None else {**self.outlook.numbers(), **self.numbers}


@frozen(kw_only=True)
class BatchWish:
    """The `executors` wanted for batch stages, in addition to those of the queries (0 or more).

    `reason` is a key of ``core/reasons/catalogue.py``; the `numbers` fill its sentence. `unsmoothed` is the
    number of executors that the current metrics alone call for, None if that is `executors`. Raises
    ValueError for fewer than 0 executors.
    """

    executors: int = field(validator=ge(0))
    reason: str
    numbers: Mapping[str, Number] = field(factory=dict)
    unsmoothed: int | None = field(default=None, validator=optional(ge(0)))


@frozen(kw_only=True)
class Wish:
    """What a policy wants for queries, by id.

    It wants no number of slots for a query that is missing from `queries`. Such a query gets the number that
    an earlier policy wanted, or its `limits` alone apply, or else its declared bounds. `limits` restrict the
    slots of a query, in order of precedence. `executors` is the minimum of executors in total, None if the
    slots of the queries decide; `executors_by` names who wants them, such as "the window morning". `until` is
    the latest time to ask the policy again, whatever the queries do (epoch ms), None to wait for the next
    event. `batch` is the wish for batch stages, None if the policy does not handle them.
    """

    queries: Mapping[str, QueryWish] = field(factory=dict)
    limits: Mapping[str, tuple[SlotLimits, ...]] = field(factory=dict)
    executors: int | None = field(default=None, validator=optional(ge(0)))
    executors_by: str = "a policy"
    until: int | None = None
    batch: BatchWish | None = None


class Policy(Protocol):
    """Decides what the queries of an application should have.

    A policy is a pure function: the same view gives the same wish, whatever it has seen before. What a policy
    has to remember is in the view: what was wanted, granted and applied before.

    A wish has numbers of slots for queries, limits for them, or both. Policies form a chain (`custom.py`):
    each sees the view with the limits that those before it have stated. If several want a number of slots for
    a query, the last one decides. Every wish is trimmed to the limits (`limits.py`), so a policy need not
    respect them itself: neither a number nor a limit exceeds what is declared for a query or was stated
    before. A wish beyond that is granted as far as possible, with the reason.
    """

    def decide(self, view: ClusterView) -> Wish:
        """Return what is wanted now."""
        ...


# ---- A custom policy is asked by an action, and its answer is an event. So third-party code runs neither in
# the core nor in the thread of the event loop. Its answers are in the journal, so a replay does not need the
# code.


@frozen(kw_only=True)
class AskPolicy(Action):
    """Ask the custom policy of this name for its wish.

    The `view` follows from earlier events, so it is not written down: an action that was read has None.
    """

    policy: str
    view: ClusterView | None = field(default=None, eq=False, repr=False)


@frozen(kw_only=True)
class PolicyAnswered(Event):
    """The wish of a custom policy that was asked with the action `asked`.

    `error` says in one line why there is no usable answer, None if there is one. `took_ms` is the time spent
    waiting for it.
    """

    policy: str
    asked: str
    wish: Wish | None = None
    error: str | None = None
    took_ms: int = 0
