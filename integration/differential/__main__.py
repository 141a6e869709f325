"""Run programs that chance has made without the plugin and with it, and compare what comes of them.

usage: python -m integration.differential --seed S --minutes M [--programs N] [--large] [--folder DIR]
What differs shrinks to a few lines and is written as a script of its own. With `--large`, programs need much
memory, and the applications have little. The last line printed is one JSON object; the exit code
is 1 if something was found that came again.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

from integration.differential.application import Application, Pair
from integration.differential.large import HEAP, large_programs
from integration.differential.large import SLOTS as LARGE_SLOTS
from integration.differential.measure import jar
from integration.differential.run import SLOTS, Search
from integration.differential.strategies import programs


def main() -> int:
    """Search, and print the result."""
    arguments = _arguments()
    # As at Ctrl-C: what was started is to end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="differential-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {arguments.seed}, everything is in {folder}", file=sys.stderr, flush=True)
    heap = HEAP if arguments.large else "1g"
    measuring = jar()
    jars = [measuring] if measuring else []
    with (
        Application(folder / "plain", elastic=False, heap=heap, jars=jars) as plain,
        Application(folder / "elastic", elastic=True, heap=heap, jars=jars) as elastic,
    ):
        search = Search(
            Pair(plain, elastic, folder),
            large_programs() if arguments.large else programs(),
            arguments.seed,
            folder,
            slots=LARGE_SLOTS if arguments.large else SLOTS,
        )
        search.last(arguments.minutes, arguments.programs)
    print(json.dumps(search.result()))
    return int(any(finding.again for finding in search.findings))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.differential",
        description="Compare programs that chance has made, without the plugin and with it.",
    )
    parser.add_argument("--seed", type=int, default=1, help="chooses the programs (default 1)")
    parser.add_argument("--minutes", type=float, default=10, help="none begins later (default 10)")
    parser.add_argument("--programs", type=int, help="no more than so many")
    parser.add_argument(
        "--large", action="store_true", help=f"programs that need much memory, in applications with {HEAP}"
    )
    parser.add_argument("--folder", type=Path, help="a new folder for all that is written")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
