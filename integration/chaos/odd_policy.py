"""The real policy process, which misbehaves as a file orders.

The file has a word and its detail: `garbage KEY` makes the next exchange that of `NONSENSE`, `late SECONDS`
delays each exchange by that time, `never` stops all exchanges, `odd_answers` replaces each answer to a
request, `slow_journal SECONDS` makes each flush of the journal take that long. `garbage` and `never` apply to
one process: it removes the file.

usage: odd_policy.py FILE and the plugin's own arguments
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path
from typing import Any

GARBAGE, LATE, NEVER, ODD_ANSWERS = "garbage", "late", "never", "odd_answers"
SLOW_JOURNAL = "slow_journal"
NONSENSE = {
    "text": "}{ no JSON",
    "nothing": "",
    "list": "[]",
    "null": "null",
    "no_actions": "{}",
    "unknown_action": '{"actions": [{"type": "MakeCoffee", "id": "a1"}], "wait_ms": 0}',
    "no_count": '{"actions": [{"type": "Rescale", "id": "a1", "query": "q", "partitions": "two"}]}',
    "deep": "[" * 100_000,
    "cut_off": '{"actions": [{"type": "Rescale", "id": "a1", "qu',
}
_FOREVER_S = 3600.0
_ODD: tuple[dict[str, Any], ...] = (
    {},
    {"status": "fine", "headers": 7, "body": None},
    {"status": 99_999, "headers": {"a": "b\r\nc: d"}, "body": "x"},
    {"answers": "none"},
    {"answers": [{"partitions": -5, "tasks": 1 << 40, "specs": [{"start": 3, "end": 1}]}] * 9},
    {"answers": [{"partitions": "two", "tasks": None, "specs": 7}, 5]},
)


class OddPolicy:
    """The other end: orders the misbehaviour of the policy process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.file = folder / "odd"

    def order(self, kind: str, detail: str) -> None:
        """Start this misbehaviour."""
        hidden = self.file.with_suffix(".new")
        hidden.write_text(f"{kind} {detail}")
        hidden.replace(self.file)

    @property
    def taken(self) -> bool:
        """Whether a process has taken an order for one process; other orders stay until `calm`."""
        return not self.file.exists()

    def calm(self) -> None:
        """End any misbehaviour."""
        self.file.unlink(missing_ok=True)


def main(file: Path) -> None:
    """Run the policy process."""
    from spark_elastic.gateway.client import Py4JGateway
    from spark_elastic.runtime.journal import Journal

    real, answered = Py4JGateway._call, 0
    real_write = Journal.end_batch

    def call(gateway: Py4JGateway, method: str, request: dict[str, Any]) -> dict[str, Any]:
        nonlocal answered
        kind, _, detail = _order(file)
        if method == "exchange":
            if kind == LATE:
                time.sleep(float(detail))
            elif kind == NEVER:
                file.unlink(missing_ok=True)
                time.sleep(_FOREVER_S)
            elif kind == GARBAGE:
                file.unlink(missing_ok=True)
                # Sent directly: the usual way would encode it as JSON.
                gateway._gateway.entry_point.exchange(NONSENSE[detail])
        elif kind == ODD_ANSWERS and request.get("answer"):
            answered += 1
            odd = _ODD[answered % len(_ODD)]
            request = {**request, "answer": {"id": request["answer"]["id"], **odd}}
        return real(gateway, method, request)

    def write(journal: Journal, *state: Any) -> None:
        kind, _, detail = _order(file)
        if kind == SLOW_JOURNAL:
            time.sleep(float(detail))
        real_write(journal, *state)

    Py4JGateway._call = call  # type: ignore[method-assign, assignment]
    Journal.end_batch = write  # type: ignore[method-assign, assignment]
    runpy.run_module("spark_elastic.runtime", run_name="__main__", alter_sys=True)


def _order(file: Path) -> tuple[str, str, str]:
    try:
        return file.read_text().partition(" ")
    except FileNotFoundError:
        return "", "", ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
