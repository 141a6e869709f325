"""A stand-in for the policy, so that restarts come at known moments: it decides nothing, it follows orders.

Run by the plugin in place of ``python -m spark_elastic.runtime``; its only argument is a folder:

    orders.json   {"every": n, "now": bool, "pause": bool, "hold": bool, "grace_ms": n}: each query is stopped
                  for a restart after every n-th progress report (0: never), or once with `now`, with that
                  grace, alternately with 3 and 2 partitions, its state re-partitioned; while `pause` is true,
                  what was stopped is not started again; with `hold`, a new query gets no answer
    seen.jsonl    what it has seen and ordered, a JSON object a line

Plain Py4J, nothing of the package: what is tested is the shim alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway

FOLDER = Path(sys.argv[1])


class Script:
    def __init__(self) -> None:
        self.actions: list[dict[str, Any]] = []
        self.facts: dict[str, dict[str, Any]] = {}
        self.reports: dict[str, int] = {}
        self.partitions: dict[str, int] = {}
        self.paused: list[str] = []
        self.ordered = 0
        self.stopped_now = False

    def order(self, kind: str, **fields: Any) -> None:
        self.ordered += 1
        action = {"type": kind, "id": f"a{self.ordered}", "cause": "s0", **fields}
        self.actions.append(action)
        note(action)

    def start(self, query: str, *, repartition: bool) -> None:
        self.order(
            "StartQuery",
            query=query,
            partitions=self.partitions[query],
            repartition=repartition,
            rescalable=not repartition,
        )

    def restart(self, query: str) -> None:
        self.partitions[query] = 5 - self.partitions[query]
        self.start(query, repartition=self.facts[query]["stateful"])

    def stop_now(self, now: dict[str, Any]) -> None:
        if now["now"] and not self.stopped_now:
            for query in self.facts:
                self.order("StopQuery", query=query, grace_ms=now["grace_ms"])
        self.stopped_now = now["now"]

    def handle(self, event: dict[str, Any], now: dict[str, Any]) -> None:
        query, every = event.get("query", ""), now["every"]
        if event["type"] == "Snapshot":
            self.order("Configure", hang_ms=60_000, start_wait_ms=60_000)
            for known in event["queries"]:
                self.submitted(known["facts"])
        elif event["type"] == "QuerySubmitted" and not now["hold"]:
            self.submitted(event["facts"])
        elif event["type"] == "QueryProgress":
            self.reports[query] = self.reports.get(query, 0) + 1
            if every and self.reports[query] % every == 0 and query in self.facts:
                self.order("StopQuery", query=query, grace_ms=now["grace_ms"])
        elif event["type"] == "QueryStopped":
            self.paused.append(query)
        elif event["type"] == "QueryTerminated":
            self.facts.pop(query, None)
            if query in self.paused:
                self.paused.remove(query)

    def submitted(self, facts: dict[str, Any]) -> None:
        query = facts["query"]
        self.facts[query] = facts
        self.partitions[query] = 2
        old = facts["checkpoint_partitions"]
        self.start(query, repartition=old is not None and old != 2)


def note(line: dict[str, Any]) -> None:
    with (FOLDER / "seen.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def orders() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((FOLDER / "orders.json").read_text())
    return value


def first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1)
    return line


def end_with_driver() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def main() -> None:
    handshake = json.loads(first_line())
    threading.Thread(target=end_with_driver, daemon=True).start()
    parameters = GatewayParameters(port=handshake["port"], auth_token=handshake["token"])
    entry = JavaGateway(gateway_parameters=parameters).entry_point
    hello = {"challenge": "c0ffee", "version": handshake["version"], "contract": 1}
    proof = json.loads(entry.hello(json.dumps(hello)))["proof"]
    assert proof == hmac.new(handshake["token"].encode(), b"c0ffee", hashlib.sha256).hexdigest()
    script, stop = Script(), False
    while not stop:
        actions, script.actions = script.actions, []
        reply = json.loads(entry.exchange(json.dumps({"actions": actions, "wait_ms": 50})))
        stop = reply["stop"]
        now = orders()
        for event in reply["events"]:
            note(event)
            script.handle(event, now)
        script.stop_now(now)
        while script.paused and not now["pause"]:
            script.restart(script.paused.pop(0))


if __name__ == "__main__":
    main()
