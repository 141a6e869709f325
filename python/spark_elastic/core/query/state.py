"""What all states have in common.

A state is plain data: what the query is doing, and since when. It names the events that it understands
and those that it leaves out on purpose; anything else is reported as making no sense. A state sets no
timers: it says until when it waits (`due`), and the machine keeps one timer in step with that, which dies
with the state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from attrs import define

from spark_elastic.core.events import Event, QueryInfo, SavepointRequested
from spark_elastic.core.query.context import Context


@define(kw_only=True)
class State(ABC):
    """One state of one query; `entered` is when it was reached (epoch ms)."""

    name: ClassVar[str]
    handles: ClassVar[frozenset[type[Event]]]
    ignores: ClassVar[Mapping[type[Event], str]]

    entered: int

    @property
    def due(self) -> int | None:
        """The time at which `due_reached` is to be called, None if there is none."""
        return None

    @abstractmethod
    def enter(self, context: Context) -> None:
        """Begin."""

    @abstractmethod
    def on(self, event: Event, context: Context) -> None:
        """React to one of the events in `handles`."""

    @abstractmethod
    def resources_changed(self, context: Context) -> None:
        """React to another number of slots."""

    def found_again(self, info: QueryInfo, context: Context) -> None:
        """Repeat what was ordered and may be lost; a snapshot shows nothing that was not known."""

    def requirements_changed(self, context: Context) -> None:
        """React to other bounds."""
        self.resources_changed(context)

    def savepoint_requested(self, event: SavepointRequested, context: Context) -> None:
        """React to somebody who wants a savepoint: by itself a state has nothing to copy."""
        context.refuse_savepoint()

    def due_reached(self, context: Context) -> None:
        """React to the time that `due` has named."""
        raise AssertionError(f"{self.name} is never due")

    def validate(self) -> None:
        """Check the state's own invariants. Raises AssertionError."""
        assert self.entered >= 0
