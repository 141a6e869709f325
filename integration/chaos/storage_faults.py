"""Faults of the storage for checkpoints."""

from __future__ import annotations

import random

from integration.chaos.faults import Fault
from integration.chaos.standalone import Standalone
from integration.chaos.storage import OPERATIONS

_PERCENT = (10, 50, 100)
_MS = (20, 400)


class _Storage(Fault[Standalone]):
    """A fault of the storage, which healing ends."""

    where = "standalone"
    shortest, longest = 0.2, 8.0

    def heal(self, world: Standalone) -> None:
        world.storage.bring_back()


class StorageAway(_Storage):
    """The checkpoints cannot be reached."""

    name = "storage_away"
    repeats = True
    fails = True
    ends_queries = True

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        world.storage.take_away()
        return "all checkpoints"


class StorageFails(_Storage):
    """One kind of operation fails, always or sometimes, as when the storage is full or sheds load."""

    name = "storage_fails"
    repeats = True
    fails = True
    ends_queries = True

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        operation, percent = chance.choice(OPERATIONS), chance.choice(_PERCENT)
        world.storage.be_odd(operation, percent=percent)
        return f"{percent} of 100 {operation}"


class StorageSlow(_Storage):
    """Every operation takes longer, which is no reason for anything to fail."""

    name = "storage_slow"
    shortest, longest = 1.0, 10.0

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        ms = chance.randint(*_MS)
        world.storage.be_odd("all", ms=ms)
        return f"{ms} ms more"
