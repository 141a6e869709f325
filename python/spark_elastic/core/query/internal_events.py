"""What concerns one query beside the events that name it: its machine is told by these."""

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
    """The query may have another parallelism; `share` are the slots that it has by that."""

    requirements: Requirements
    share: Share


@frozen
class SettingsChanged:
    """The query has other settings, `settings` None: those of the application."""

    settings: CoreSettings | None


@frozen
class Recovered:
    """A snapshot shows this of a query that was known before, None: nothing."""

    info: QueryInfo | None


@frozen
class Superseded:
    """A newer run of the query is there, or none any more."""


@frozen
class MoveGranted:
    """The query may move its state now."""


@frozen
class MoveQueued:
    """The query cannot move its state yet: as many others do as may at once."""


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
"""All that the machine of a query can be told."""
