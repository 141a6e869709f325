"""The target of the faults: an application, its input, and access to it, wherever it runs."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import psutil
from attrs import define, field

from integration.chaos.rows import INTO_FILES, STATEFUL, Feeder, Tail
from integration.chaos.settings import MOST, SECRET, Mode
from integration.streaming.driver import policies_of
from spark_elastic_tools.client import Busy, Driver, Failure, Json, NoDriver, Refused

_OPEN = 32_768
READ_S = 3.0


class DriverProcess(Protocol):
    """The driver's JVM, with its log."""

    @property
    def pid(self) -> int:
        """Return its process id on this machine."""

    @property
    def log(self) -> Path:
        """Return the file with what it says."""

    @property
    def running(self) -> bool:
        """Return whether it has not ended."""

    @property
    def exit_code(self) -> int | None:
        """Return how it has ended, None while it runs."""

    def log_tail(self, lines: int = ...) -> str:
        """Return the last lines of its log."""

    def wait(self, timeout_s: float) -> int | None:
        """Return its exit code, None if it still runs after that time."""


@define(kw_only=True)
class World(ABC):
    """A running application with its cluster; faults change it, `calm` restores it."""

    folder: Path
    feeder: Feeder
    tail: Tail
    mode: Mode = "adaptive"
    #: The queries with state that the application has; one without is there beside them.
    stateful: tuple[str, ...] = STATEFUL
    process: DriverProcess = field(init=False)
    api: Driver = field(init=False)
    logs: list[Path] = field(factory=list)
    most: int = MOST
    #: The seconds until all has to be well: after faults, for slots, and after the start of a driver.
    recovered_s: float = 60.0
    slots_s: float = 30.0
    started_s: float = 180.0
    #: What Spark itself did wrong meanwhile, by its name in the report, and how often.
    oddities: dict[str, int] = field(factory=dict)
    _ids: dict[str, str] = field(factory=dict)
    _ills: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the application's queries."""
        return (INTO_FILES, *self.stateful)

    @abstractmethod
    def place(self, name: str) -> Path:
        """Return the path on this machine of a folder in the storage for checkpoints."""

    @abstractmethod
    def executors(self) -> dict[str, psutil.Process]:
        """Return the running executors by their id."""

    @abstractmethod
    def wanted_executors(self) -> tuple[int, str]:
        """Return how many executors there should be, and for what."""

    @abstractmethod
    def calm(self) -> None:
        """Undo what does not recover on its own. Raises AssertionError."""

    def replace_lost(self) -> bool:
        """Replace what gets no more executors by a defect of Spark's; return whether there was anything."""
        return False

    def end(self) -> None:
        """Let nothing start the application again, which has ended."""

    @abstractmethod
    def left_over(self) -> Iterable[str]:
        """Name what still runs after the end."""

    @property
    def plugin(self) -> bool:
        """Return whether the plugin is present: a policy, the API, phases."""
        return self.mode != "plain"

    @property
    def output(self) -> Path:
        """Return the folder to which the application writes."""
        return self.folder / "output"

    def journals(self) -> list[Path]:
        """Return the journals, including those that were set aside."""
        names = (self.folder / "journal").glob("*.jsonl*")
        return sorted(path for path in names if not path.name.endswith(".1"))

    def say(self, what: str) -> None:
        """Write a line to the harness's own log, with the time as in the driver's."""
        with (self.folder / "chaos.log").open("a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {what}\n")

    @property
    def is_frozen_or_gone(self) -> bool:
        """Return whether the driver is frozen or has ended."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
        return True

    def policies(self) -> list[psutil.Process]:
        """Return the running policy processes."""
        with suppress(psutil.NoSuchProcess):
            return policies_of(self.process.pid)
        return []

    def stop_and_start(self, name: str) -> None:
        """Let the application stop a query and start it again."""
        (self.output / f"again-{name}").touch()

    def take_over(self, name: str) -> None:
        """Let the application start two other queries on a query's checkpoint, the second under its name."""
        (self.output / f"over-{name}").touch()

    def has_stopped(self, name: str) -> bool:
        """Return whether the application has stopped a query as ordered."""
        return not (self.output / f"again-{name}").exists() or (self.output / f"stopped-{name}").exists()

    def has_started(self, name: str) -> bool:
        """Return whether the application has started a query as often as ordered."""
        return not any((self.output / f"{order}-{name}").exists() for order in ("again", "over"))

    @property
    def sink(self) -> Path:
        """Return the folder of the query that writes files."""
        return self.place(INTO_FILES)

    def queries(self) -> Mapping[str, Json]:
        """Return the queries by name, as the API shows them. Raises Failure."""
        found = {str(query["name"]): query for query in self.api.get("/queries")["queries"]}
        self._ids |= {name: str(query["id"]) for name, query in found.items()}
        return found

    def has_ended(self) -> bool:
        """Return whether a query has ended: none ends on its own, and further steps would prove nothing."""
        shown: Mapping[str, Json] = {}
        if self.plugin:
            with suppress(Failure):
                shown = self.queries()
        return any(name in shown and shown[name]["state"] == "Finished" for name in self.names)

    def query(self, name: str) -> Json:
        """Return one query. Raises Failure."""
        return self.api.get(self.path(name))

    def path(self, name: str) -> str:
        """Return the path of a query in the API."""
        if name not in self._ids:
            self.queries()
        return f"/queries/{quote(self._ids[name])}"

    def bounds(self, name: str) -> Json:
        """Return the bounds of a query. Raises Failure."""
        return self.api.get(f"{self.path(name)}/resource-requirements")

    def set_bounds(self, name: str, lower: int, upper: int) -> None:
        """Change the bounds of a query. Raises Failure."""
        body = {"shuffle": {"parallelism": {"lowerBound": lower, "upperBound": upper}}}
        self.api.put(f"{self.path(name)}/resource-requirements", body, "*")

    def take_bounds_back(self, name: str) -> None:
        """Reset a query to the bounds of its settings. Raises AssertionError and Failure."""
        self.api.delete(f"{self.path(name)}/resource-requirements")
        assert self._is_open(name), f"the bounds of {name} are taken back, and still {self.bounds(name)}"

    def _is_open(self, name: str) -> bool:
        """Return whether a query has only the bounds of the settings. Raises Failure."""
        bounds = self.bounds(name)["shuffle"]["parallelism"]
        return (bounds["lowerBound"], bounds["upperBound"]) == (1, _OPEN)

    def make_ill(self, name: str) -> None:
        """Make the batches of a query fail, with another message than the last time."""
        self._ills += 1
        words = "very " * (self._ills % 7)
        hidden = self.output / f".ill-{name}"
        hidden.write_text(f"the sink at https://user:{SECRET}@sink is {words}ill")
        hidden.replace(self.output / f"ill-{name}")

    def make_well(self) -> None:
        """Let batches succeed again."""
        for ill in self.output.glob("ill-*"):
            ill.unlink()

    def ask_for_executors(self) -> None:
        """Make a query need more executors than possible for a moment, so that all of them are requested."""
        name = next(iter(self.queries()))
        self.set_bounds(name, self.most + 2, _OPEN)
        self.set_bounds(name, 1, _OPEN)

    def open_bounds(self) -> bool:
        """Take all bounds back; return whether that was possible. Raises AssertionError."""
        try:
            known = self.queries()
            for name in known:
                if not self._is_open(name):
                    self.set_bounds(name, 1, _OPEN)
            # A query that a new driver starts later still has the bounds from before.
            return set(self.names) <= set(known)
        except (Busy, NoDriver, Refused):
            # Refused means that a query was stopped and has not been started again yet.
            assert self.process.running, self.process.log_tail()
            return False
