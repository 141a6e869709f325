"""A stand-in for a policy gone mad: its first two processes talk nonsense, the next is the real one.

Arguments: a folder to count the processes in, and whatever the plugin adds.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

NONSENSE = ['{"actions": [{"type": "MakeCoffee", "id": "a1"}], "wait_ms": 0}', "}{ no JSON"]


def talk_nonsense(text: str) -> None:
    from spark_elastic.gateway.client import connect
    from spark_elastic.gateway.handshake import read_handshake

    handshake = read_handshake(0)
    entry = connect(handshake).entry_point
    entry.hello(json.dumps({"version": handshake.version, "contract": 1}))
    entry.exchange(text)


def main() -> None:
    folder = Path(sys.argv[1])
    before = len(list(folder.glob("process-*")))
    (folder / f"process-{os.getpid()}").touch()
    if before < len(NONSENSE):
        talk_nonsense(NONSENSE[before])
    else:
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])


if __name__ == "__main__":
    main()
