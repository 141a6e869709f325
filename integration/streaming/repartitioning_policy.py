"""A stand-in for the policy, so that re-partitioning comes at a known moment: at the start from a checkpoint.

Run by the plugin in place of ``python -m spark_elastic.runtime``; its only argument is the partition count
that each query gets. Plain Py4J, nothing of the package.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway


def end_with_driver() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def answer(event: dict[str, Any], number: int) -> dict[str, Any]:
    return {
        "type": "StartQuery",
        "id": f"a{number}",
        "cause": event["id"],
        "query": event["facts"]["query"],
        "run": event["run"],
        "partitions": int(sys.argv[1]),
        "rescalable": False,
    }


def main() -> None:
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1)
    handshake = json.loads(line)
    threading.Thread(target=end_with_driver, daemon=True).start()
    parameters = GatewayParameters(port=handshake["port"], auth_token=handshake["token"])
    entry = JavaGateway(gateway_parameters=parameters).entry_point
    entry.hello(json.dumps({"challenge": "c0ffee", "version": handshake["version"], "contract": 1}))
    actions: list[dict[str, Any]] = []
    stop, ordered = False, 0
    while not stop:
        reply = json.loads(entry.exchange(json.dumps({"actions": actions, "wait_ms": 1000})))
        stop, actions = reply["stop"], []
        for event in reply["events"]:
            if event["type"] == "QuerySubmitted":
                ordered += 1
                actions.append(answer(event, ordered))


if __name__ == "__main__":
    main()
