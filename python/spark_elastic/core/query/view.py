"""What is shown of the queries of a scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, frozen

from spark_elastic.core.actions import Decision
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.events import QueryFacts, QueryProgress
from spark_elastic.core.load.demand import Workload
from spark_elastic.core.query.machine import QueryMachine
from spark_elastic.core.query.record import QueryRecord, RunFailure, Savepoint
from spark_elastic.core.rescale.gain import fit
from spark_elastic.core.rescale.history import RescaleRecord


@frozen(kw_only=True)
class QueryView:
    """One query as it is now: `restarted` counts its restarts, `rescaled` those for another count.

    `history`, `exceptions` and `savepoints` have the newest first. `saving` says that a savepoint is ordered.
    `entered` is when it came to its state (epoch ms), `stayed_ms` how long it was in those that it has left.
    """

    facts: QueryFacts
    run: str
    state: str
    entered: int
    stayed_ms: Mapping[str, int]
    partitions: int | None
    target: int | None
    requirements: Requirements
    last_progress: QueryProgress | None
    workload: Workload
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
            entered=record.state.entered,
            stayed_ms=dict(record.stayed_ms),
            partitions=record.partitions,
            target=record.target,
            requirements=record.requirements,
            last_progress=record.last_progress,
            workload=_workload(record),
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


def _workload(record: QueryRecord) -> Workload:
    return Workload(
        facts=record.facts,
        pace=record.pace,
        model=fit(record.measurements, record.provider),
        needed=record.requirements.needed,
        most=record.requirements.desired,
        held=record.gate == "held",
    )
