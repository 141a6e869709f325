"""What a move that is prepared writes into a checkpoint, and what is left of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from attrs import frozen

from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.waiting import eventually

PREFIX = ".spark-elastic-copy-"


def copies(checkpoint: Path) -> list[Path]:
    """Return the hidden folders of copies."""
    return sorted(checkpoint.glob(f"{PREFIX}*"))


def read(file: Path) -> str:
    """Return a text, empty if the file does not exist."""
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""


def files(folder: Path) -> Iterator[str]:
    """Yield the names of all files below a folder, which may be changing."""
    for found in folder.rglob("*"):
        if found.is_file():
            yield str(found.relative_to(folder))


@frozen
class Copied:
    """The names of a copy in its checkpoint, as far as the copy's folder had them."""

    token: str
    placed: tuple[str, ...]

    @staticmethod
    def of(folder: Path) -> Copied:
        return Copied(folder.name.removeprefix(PREFIX), tuple(read(folder / "placed").splitlines()))

    def changelogs(self, checkpoint: Path) -> set[str]:
        return {f"state/{name}" for name in files(checkpoint / "state") if f"_{self.token}-" in name}

    def present(self, checkpoint: Path) -> set[str]:
        """Return the files of this copy in the query's state."""
        return self.changelogs(checkpoint) | {name for name in self.placed if (checkpoint / name).exists()}


def empty_partitions(checkpoint: Path) -> list[Path]:
    """Return the folders of partitions without a file."""
    partitions = (path for path in (checkpoint / "state").glob("*/*") if re.fullmatch(r"\d+", path.name))
    return [path for path in partitions if not any(files(path))]


def is_clean(checkpoint: Path, before: list[Copied]) -> bool:
    """Return whether nothing is left of copies, which no batch uses."""
    present = [name for copy in before for name in copy.present(checkpoint)]
    return not copies(checkpoint) and not present and not empty_partitions(checkpoint)


# The stand-in takes a new number for a new order.
NUMBERS = count(1)


class Orders:
    """Orders of the scripted policy about one query, one by one."""

    def __init__(self, policy: ScriptedPolicy, query: str) -> None:
        self._policy = policy
        self._query = query

    def begin(self, partitions: int, rate: int = 0) -> None:
        """Order a preparation, at a rate (bytes per second; 0: no limit)."""
        before = len(self._policy.seen("PrepareMove", self._query))
        self._policy.order(prepare=next(NUMBERS), rate=rate, counts=(partitions,))
        eventually(lambda: len(self._policy.seen("PrepareMove", self._query)) > before, "it is ordered")

    def outcome(self, kind: str = "PrepareMove") -> dict[str, Any]:
        """Wait for the outcome of the latest order of a type."""
        found = eventually(lambda: self._policy.outcome(kind, self._query), f"outcome of {kind}")
        assert found is not None
        return found

    def prepare(self, partitions: int) -> None:
        """Prepare a move."""
        self.begin(partitions)
        done = self.outcome()
        assert done["type"] == "ActionDone", done

    def order_move(self, partitions: int) -> None:
        before = len(self._policy.seen("Rescale", self._query))
        self._policy.order(now=next(NUMBERS), counts=(partitions,))
        eventually(lambda: len(self._policy.seen("Rescale", self._query)) > before, "it is ordered")

    def move(self, partitions: int) -> dict[str, Any]:
        """Order a move and return its outcome."""
        self.order_move(partitions)
        return self.outcome("Rescale")


def known(checkpoint: Path, seen: Callable[[Copied], bool] = lambda _: True) -> list[Copied]:
    """Return what copies there have, once there is one that is as asked."""
    found: list[Copied] = []

    def look() -> bool:
        found[:] = [Copied.of(folder) for folder in copies(checkpoint)]
        return any(map(seen, found))

    eventually(look, "a copy", every_s=0.001)
    return found
