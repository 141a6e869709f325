"""The journal of a simulation, written as if it had been a run on a cluster."""

from __future__ import annotations

from attrs import evolve

from spark_elastic import __version__
from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import ActionsEntry, Entry, EventEntry, Header
from spark_elastic.settings import load
from spark_elastic_lab.simulator.driver import Driver
from spark_elastic_lab.simulator.scenario import Scenario

HEADER = Header(version=__version__, application="app-1", part=0, settings={})


class Writing(Scheduler):
    """A scheduler whose events and actions are all recorded."""

    def handle(self, event: ev.Event) -> tuple[Action, ...]:
        actions = super().handle(event)
        WRITTEN.extend([EventEntry(event=event), ActionsEntry(actions=actions)])
        return actions


WRITTEN: list[Entry] = []


def recorded(what: Scenario) -> list[Entry]:
    """Simulate a scenario with its own settings, and return the journal."""
    WRITTEN[:] = [evolve(HEADER, settings=what.settings)]
    Driver(what, Writing(load(what.settings).core()), what.loads()).run()
    return list(WRITTEN)
