"""A stand-in for a broken policy: its first two processes send nonsense, the next one is the real policy.

Arguments: a folder to count the processes in, followed by the plugin's own arguments.
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
