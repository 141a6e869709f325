"""Programs that the plugin runs in place of Python, and the orders of the scripted policy."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


def program(path: Path, command: Sequence[str], *, pass_arguments: bool = False) -> str:
    """Write an executable at `path` that runs `command`; return the value for `spark.elastic.python`."""
    line = " ".join(["exec", *map(shlex.quote, command), *(['"$@"'] if pass_arguments else [])])
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


def held_by(file: Path) -> str:
    """Write a Python for policy processes next to `file`; none starts while that file exists."""
    begin = f'while [ -e {shlex.quote(str(file))} ]; do sleep 0.1; done; exec "$0" "$@"'
    return program(file.with_name("python"), ["/bin/sh", "-c", begin, sys.executable], pass_arguments=True)


def our_script(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a script of this folder with this Python."""
    return [sys.executable, str(_HERE / name), *arguments]


class ScriptedPolicy:
    """The other side of scripted_policy.py: gives orders, and reads what it has recorded."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._orders = folder / "orders.json"
        self._seen = folder / "seen.jsonl"
        self.order(every=0)
        self.python = program(folder / "policy", our_script("scripted_policy.py", str(folder)))

    def order(
        self,
        *,
        every: int = 0,
        now: int = 0,
        prepare: int = 0,
        counts: Sequence[int] = (3, 2),
        hold: bool = False,
        executors: int = 0,
        restarts: bool = False,
    ) -> None:
        """Rescale each query after this many progress reports (0: never), or once with each new `now`.

        With each new `prepare`, the next move is prepared. It goes to these `counts` by turns. `hold` lets
        new queries wait. This number of `executors` is requested, once (0: none). Queries that fail are
        retried if `restarts` is set before the driver starts.
        """
        fresh = self._orders.with_suffix(".new")
        orders = {
            "every": every,
            "now": now,
            "prepare": prepare,
            "counts": counts,
            "hold": hold,
            "executors": executors,
            "restarts": restarts,
        }
        fresh.write_text(json.dumps(orders))
        os.replace(fresh, self._orders)

    def seen(self, kind: str, query: str) -> list[dict[str, Any]]:
        """Return the events and orders of a type that concern a query (its id)."""
        return [value for value in self.all(kind) if value.get("query") == query]

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Return the events and orders of a type."""
        lines = self._seen.read_text().split("\n")[:-1] if self._seen.exists() else []
        return [value for value in map(json.loads, lines) if value["type"] == kind]

    def rescales(self, query: str) -> int:
        """Return the number of rescales of a query that have been carried out."""
        ordered = {order["id"] for order in self.seen("Rescale", query)}
        return sum(done["action"] in ordered for done in self.all("ActionDone"))

    def outcome(self, kind: str, query: str) -> dict[str, Any] | None:
        """Return the outcome of the latest order of a type about a query, None as long as there is none."""
        orders = self.seen(kind, query)
        outcomes = [*self.all("ActionDone"), *self.all("ActionFailed")]
        return next((o for o in outcomes if orders and o["action"] == orders[-1]["id"]), None)

    def sent(self, kind: str, query: str) -> int:
        """Return the number of orders of a type about a query that the shim has received."""
        return sum(order["kind"] == kind for order in self.seen("Sent", query))


class Requests:
    """The other side of asking_policy.py: sends requests to the policy as events."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._asked = 0
        self.python = program(folder / "policy", our_script("asking_policy.py", str(folder)))

    def ask(self, kind: str, **fields: Any) -> None:
        """Send an event of a kind; the policy process adds its id and time."""
        hidden = self._folder / "event.new"
        hidden.write_text(json.dumps({"type": kind, **fields}))
        self._asked += 1
        os.replace(hidden, self._folder / f"{self._asked:04d}.json")
