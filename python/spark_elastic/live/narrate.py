"""Tell in lines what has changed from one snapshot to the next."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from spark_elastic.client.names import title
from spark_elastic.client.source import Json
from spark_elastic.live.look import Snapshot

_LONGEST = 240


@define
class Narrator:
    """Remembers what was told, so that each change is told once."""

    _executors: dict[str, tuple[bool, bool]] | None = None
    _partitions: dict[str, int] = field(factory=dict)

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return one line for each thing that is new since the last call."""
        names = {query["id"]: title(query) for query in snapshot.queries}
        told = list(self._changes(snapshot.overview))
        for decision in snapshot.news:
            name = names.get(decision["query"], "all")
            told.append(f"{name}: {brief(decision['message'])} [{decision['reason']}]")
        for query in snapshot.queries:
            told += self._query(query)
        return told

    def _changes(self, overview: Json) -> Iterator[str]:
        """Tell of executors: whether each is excluded and decommissioned is what is remembered."""
        shown = {executor["id"]: executor for executor in overview["executors"]}
        now = {id: (one["excluded"], one["decommissioning"]) for id, one in shown.items()}
        before, self._executors = self._executors or {}, now
        slots = f"slots: {overview['slots']['now']}"
        for executor, (excluded, decommissioning) in now.items():
            was_excluded, was_decommissioning = before.get(executor, (False, False))
            if executor not in before:
                yield f"executor {executor} registered; {slots}"
            if decommissioning and executor in before and not was_decommissioning:
                yield f"executor {executor} takes no new tasks; {slots}"
            if excluded and not was_excluded:
                why = shown[executor]["exclusion"]
                yield f"executor {executor} is excluded{f' ({brief(why)})' if why else ''}; {slots}"
            elif was_excluded and not excluded:
                yield f"executor {executor} is no longer excluded; {slots}"
        for executor in before.keys() - now.keys():
            yield f"executor {executor} is gone; {slots}"

    def _query(self, query: Json) -> Iterator[str]:
        count = query["lastBatch"] and query["lastBatch"]["partitions"]
        if count and self._partitions.get(query["id"]) != count:
            self._partitions[query["id"]] = count
            yield f"{title(query)}: runs with {count} partition{'' if count == 1 else 's'}"


def brief(message: str) -> str:
    """Return the beginning of a message: Spark's errors bring whole plans and traces with them."""
    line = message.partition("\n")[0].strip()
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
