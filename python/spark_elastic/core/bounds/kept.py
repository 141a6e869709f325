"""Bounds that somebody has asked for, as they are kept beside a query's checkpoint.

They outlive the driver, as the resource requirements of a Flink job do in its high-availability store. With
them goes what the policy file said about the query at that time: if it says something else when they are read,
the file has been changed since, and what was said later counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from spark_elastic.core.actions import KeepBounds
from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.bounds.requirements import Bounds
from spark_elastic.core.events import ActionFailed, ActionOutcome
from spark_elastic.core.turn import Turn

FORMAT = 1


class Unusable(ValueError):
    """What is kept cannot be read; the text says why."""


@frozen(kw_only=True)
class Requested:
    """Bounds that somebody has asked for, by vertex, when the policy file said this of the query."""

    bounds: Mapping[str, Bounds]
    file: Mapping[str, WantedBounds] = field(factory=dict)

    def is_older_than(self, file: Mapping[str, WantedBounds]) -> bool:
        """Say whether the policy file, which says this of the query, was changed after the request."""
        return bool(file) and file != self.file


def write(requested: Requested) -> str:
    """Return the text that is kept."""
    return json.dumps(
        {"version": FORMAT, "bounds": _pairs(requested.bounds), "file": _pairs(requested.file)},
        separators=(",", ":"),
        sort_keys=True,
    )


def read(text: str) -> Requested:
    """Read what `write` has written. Raises Unusable."""
    try:
        kept = json.loads(text)
        if kept["version"] != FORMAT:
            raise Unusable(f"its version is {kept['version']}, this one reads {FORMAT}")
        bounds = {
            vertex: Bounds(lower=lower, upper=upper) for vertex, (lower, upper) in kept["bounds"].items()
        }
        file = {
            vertex: WantedBounds(lower=lower, upper=upper) for vertex, (lower, upper) in kept["file"].items()
        }
        for vertex, bound in bounds.items():
            if not 1 <= bound.lower <= bound.upper:
                raise Unusable(f"{vertex} is bounded from {bound.lower} to {bound.upper}")
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unusable(f"{type(error).__name__}: {error}") from error
    except ValueError as error:
        raise Unusable(str(error)) from error
    return Requested(bounds=bounds, file=file)


def _pairs(bounds: Mapping[str, Any]) -> dict[str, list[int]]:
    return {vertex: [bound.lower, bound.upper] for vertex, bound in bounds.items()}


@define
class Keeping:
    """The orders to keep bounds, with the query that each is about. Who fails to is only reported."""

    _orders: dict[str, str] = field(factory=dict)

    def order(self, query: str, requested: Requested | None, turn: Turn) -> None:
        """Order that these bounds are kept, None: that none are any more."""
        text = None if requested is None else write(requested)
        action = KeepBounds(id=turn.next_action(), cause=turn.cause, query=query, text=text)
        self._orders[action.id] = query
        turn.emit(action)

    def answered(self, event: ActionOutcome, turn: Turn) -> None:
        """Take in what became of an order, if it is one of these."""
        query = self._orders.pop(event.action, None)
        if query is not None and isinstance(event, ActionFailed):
            turn.report("bounds_not_kept", query=query, error=event.error)

    def lose_orders(self) -> None:
        """Wait for no outcome any more: who owed it is gone."""
        self._orders.clear()
