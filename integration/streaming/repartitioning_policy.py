"""A stand-in for the policy that re-partitions at a known moment: at the start from a checkpoint.

The plugin runs it in place of ``python -m spark_elastic.runtime``; its only argument is the partition count
that each query gets. It uses only the package's connection to the driver.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from spark_elastic.gateway.client import connect
from spark_elastic.gateway.handshake import read_handshake, watch_for_end


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
    handshake = read_handshake(0)
    watch_for_end(0, lambda: os._exit(0))
    entry = connect(handshake).entry_point
    entry.hello(json.dumps({"version": handshake.version, "contract": 1}))
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
