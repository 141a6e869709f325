"""A stand-in for the policy that rescales at known moments: it decides nothing and follows orders.

The plugin runs it in place of ``python -m spark_elastic.runtime``; its only argument is a folder:

orders.json   {"every": n, "now": m, "prepare": p, "counts": [c, ...], "hold": bool, "executors": e,
              "restarts": bool}: each query is rescaled after every n-th progress report (0: never), or
              once with each new `now` (0: never), to these counts by turns; with each new `prepare`
              (0: never), the move to the next of them is prepared; with `hold`, a new query has to wait for
              its first micro-batch until `hold` is false; each new number of executors is requested (0:
              none). A query that fails ends, or is retried if `restarts` was true at the start
seen.jsonl    its events, orders and messages, one JSON object per line

It uses only the package's connection to the driver: the shim is what is tested.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from spark_elastic.gateway.client import connect
from spark_elastic.gateway.handshake import read_handshake, watch_for_end

FOLDER = Path(sys.argv[1])


class Script:
    def __init__(self) -> None:
        self.actions: list[dict[str, Any]] = []
        self.facts: dict[str, dict[str, Any]] = {}
        self.reports: dict[str, int] = {}
        self.runs: dict[str, str] = {}
        self.rescales: dict[str, int] = {}
        self.held: list[str] = []
        self.ordered = 0
        self.rescaled_now = 0
        self.prepared = 0
        self.requested = 0
        self.restarts = False

    def order(self, kind: str, **fields: Any) -> None:
        self.ordered += 1
        action = {"type": kind, "id": f"a{self.ordered}", "cause": "s0", **fields}
        self.actions.append(action)
        note(action)

    def start(self, query: str) -> None:
        rescalable = self.makes_rescalable(query)
        self.order("StartQuery", query=query, run=self.runs[query], partitions=2, rescalable=rescalable)

    def makes_rescalable(self, query: str) -> bool:
        facts = self.facts[query]
        is_free = facts["checkpoint_partitions"] is None and not facts["provider_chosen"]
        return bool(facts["stateful"]) and is_free

    def prepare(self, query: str, counts: list[int]) -> None:
        count = counts[self.rescales[query] % len(counts)]
        self.order("PrepareMove", query=query, run=self.runs[query], partitions=count, tasks=1)

    def rescale(self, query: str, counts: list[int]) -> None:
        count = counts[self.rescales[query] % len(counts)]
        self.rescales[query] += 1
        self.order("Rescale", query=query, run=self.runs[query], partitions=count)

    def follow(self, now: dict[str, Any]) -> None:
        if now["prepare"] not in (0, self.prepared):
            for query in self.facts:
                self.prepare(query, now["counts"])
        self.prepared = now["prepare"]
        if now["now"] not in (0, self.rescaled_now):
            for query in self.facts:
                self.rescale(query, now["counts"])
        self.rescaled_now = now["now"]
        if now["executors"] not in (0, self.requested):
            self.order("RequestExecutors", total=now["executors"])
        self.requested = now["executors"]
        while self.held and not now["hold"]:
            self.start(self.held.pop(0))

    def handle(self, event: dict[str, Any], now: dict[str, Any]) -> None:
        query, every = event.get("query", ""), now["every"]
        if event["type"] == "Snapshot":
            self.restarts = now["restarts"]
            self.order("Configure", start_wait_ms=60_000, batch_stages=True, restarts=self.restarts)
            for known in event["queries"]:
                self.submitted(known, now)
        elif event["type"] == "QuerySubmitted":
            self.submitted(event, now)
        elif event["type"] == "QueryProgress":
            self.reports[query] = self.reports.get(query, 0) + 1
            if every and self.reports[query] % every == 0 and query in self.facts:
                self.rescale(query, now["counts"])
        elif event["type"] == "QueryFailed" and self.restarts:
            self.start(query)
        elif event["type"] == "QueryFailed":
            self.order("FailQuery", query=query, run=event["run"], message=None)
        elif event["type"] == "QueryTerminated":
            self.facts.pop(query, None)
            if query in self.held:
                self.held.remove(query)

    def submitted(self, told: dict[str, Any], now: dict[str, Any]) -> None:
        facts = told["facts"]
        query = facts["query"]
        self.facts[query], self.runs[query] = facts, told["run"]
        self.rescales[query] = 0
        if now["hold"]:
            self.held.append(query)
            rescalable = self.makes_rescalable(query)
            run, message = self.runs[query], "Is told to wait."
            self.order("HoldQuery", query=query, run=run, message=message, rescalable=rescalable)
        else:
            self.start(query)


def note(line: dict[str, Any]) -> None:
    with (FOLDER / "seen.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def orders() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((FOLDER / "orders.json").read_text())
    return value


def main() -> None:
    handshake = read_handshake(0)
    watch_for_end(0, lambda: os._exit(0))
    entry = connect(handshake).entry_point
    entry.hello(json.dumps({"version": handshake.version, "contract": 1}))
    script, stop = Script(), False
    while not stop:
        actions, script.actions = script.actions, []
        reply = json.loads(entry.exchange(json.dumps({"actions": actions, "wait_ms": 50})))
        for action in actions:
            note({"type": "Sent", "query": action.get("query", ""), "kind": action["type"]})
        stop = reply["stop"]
        now = orders()
        for event in reply["events"]:
            note(event)
            script.handle(event, now)
        script.follow(now)


if __name__ == "__main__":
    main()
