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
    from py4j.java_gateway import GatewayParameters, JavaGateway

    handshake = json.loads(sys.stdin.readline())
    parameters = GatewayParameters(port=handshake["port"], auth_token=handshake["token"])
    entry = JavaGateway(gateway_parameters=parameters).entry_point
    entry.hello(json.dumps({"challenge": "c0ffee", "version": handshake["version"], "contract": 1}))
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
