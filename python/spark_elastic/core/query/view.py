"""What is shown of the queries of a scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, frozen

from spark_elastic.core.actions import Decision
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.cluster.shares import Share
from spark_elastic.core.events import QueryFacts, QueryProgress
from spark_elastic.core.query.machine import QueryMachine
from spark_elastic.core.query.record import RunFailure, Savepoint
from spark_elastic.core.rescale.history import RescaleRecord


@frozen(kw_only=True)
class QueryView:
    """One query as it is now: `restarted` counts its restarts, `rescaled` those for another count.

    `history`, `exceptions` and `savepoints` have the newest first. `saving` says that a savepoint is ordered.
    """

    facts: QueryFacts
    run: str
    state: str
    partitions: int | None
    target: int | None
    requirements: Requirements
    share: Share
    last_progress: QueryProgress | None
    last_decision: Decision | None
    restarted: int
    rescaled: int
    history: tuple[RescaleRecord, ...]
    exceptions: tuple[RunFailure, ...]
    savepoints: tuple[Savepoint, ...]
    saving: bool


@define
class Queries(Mapping[str, QueryView]):
    """Views of all queries, made when they are asked for."""

    _machines: Mapping[str, QueryMachine]

    def __getitem__(self, query: str) -> QueryView:
        machine = self._machines[query]
        record = machine.record
        return QueryView(
            facts=record.facts,
            run=record.run,
            state=record.state.name,
            partitions=record.partitions,
            target=record.target,
            requirements=record.requirements,
            share=record.share,
            last_progress=record.last_progress,
            last_decision=record.last_decision,
            restarted=record.restarted,
            rescaled=record.rescaled,
            history=tuple(record.history.records),
            exceptions=record.exceptions,
            savepoints=record.savepoints,
            saving=any(order.kind == "savepoint" for order in record.orders.values()),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._machines)

    def __len__(self) -> int:
        return len(self._machines)
