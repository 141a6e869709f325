"""Inputs of one query's machine in addition to the events that name the query."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.bounds.shares import Share
from spark_elastic.core.events import Event, QueryInfo
from spark_elastic.core.settings import CoreSettings


@frozen(kw_only=True)
class Begun:
    """The query was just taken up: it was submitted, or `found` in a snapshot."""

    found: bool


@frozen
class SlotsChanged:
    """The application has another number of slots, or the query another share of them."""


@frozen
class BoundsChanged:
    """The bounds of the query's parallelism have changed; `share` is its share of the slots with them."""

    requirements: Requirements
    share: Share


@frozen
class SettingsChanged:
    """The query has other settings; `settings` None: those of the application."""

    settings: CoreSettings | None


@frozen
class Recovered:
    """A snapshot shows this about a query that was known before; None: the query is not in it."""

    info: QueryInfo | None


@frozen
class Superseded:
    """A newer run of the query exists, or no run any more."""


@frozen
class MoveGranted:
    """The query may move its state now."""


@frozen
class MoveQueued:
    """The query cannot move its state yet: the limit on concurrent moves is reached."""


QueryInput = (
    Event
    | Begun
    | SlotsChanged
    | BoundsChanged
    | SettingsChanged
    | Recovered
    | Superseded
    | MoveGranted
    | MoveQueued
)
"""All inputs of a query's machine."""
