"""The view of a scheduler's queries that is shown outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import define, frozen

from spark_elastic.core.actions import Decision
from spark_elastic.core.bounds.requirements import Requirements, joined_groups
from spark_elastic.core.bounds.shares import Share
from spark_elastic.core.events import Provider, QueryFacts, QueryProgress
from spark_elastic.core.load.pace import Pace
from spark_elastic.core.load.reading import Reading
from spark_elastic.core.own_settings import own_texts
from spark_elastic.core.policies.planner import Plan, Planner
from spark_elastic.core.query.demand import Workload
from spark_elastic.core.query.machine import QueryMachine
from spark_elastic.core.query.record import RunFailure, Savepoint
from spark_elastic.core.reasons.catalogue import message
from spark_elastic.core.rescale.gain import Measurements, Point, fit
from spark_elastic.core.rescale.history import RescaleRecord
from spark_elastic.core.rescale.preparation import Preparation
from spark_elastic.core.rescale.situation import repartition_obstacle, untouched
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.transitions import FINISHED


@frozen
class Obstacle:
    """What is in the way of a rescale: the code of a reason, and its sentence."""

    reason: str
    message: str


@frozen(kw_only=True)
class QueryView:
    """One query as it is now: `restarted` counts its restarts, `rescaled` its changes of the count.

    `history`, `exceptions` and `savepoints` have the newest first. `saving` says that a savepoint is ordered.
    `requirements_number` is the number of the requirements in force in the history. `entered` is when it
    entered its state (epoch ms), `stayed_ms` the time that it spent in each state that it has left.
    `preparing` is the copy of its state that is under way, None without one. `declared` are the requirements
    that were declared for it, `requirements` those in force, which a policy may have narrowed. `settings` are
    those in force for it, next to those of the `application`. `pace` and `points` are the measurements of its
    micro-batches; a `held` one waits to be started. `plan` is a policy's decision for it, None where its
    declared bounds alone count. `reading` is how its sources are read, None where its micro-batches may have
    a shuffle. `hold` is the decision that holds it back now, None if nothing does.
    """

    facts: QueryFacts
    run: str
    state: str
    entered: int
    stayed_ms: Mapping[str, int]
    partitions: int | None
    target: int | None
    preparing: Preparation | None
    requirements: Requirements
    declared: Requirements
    share: Share
    last_progress: QueryProgress | None
    pace: Pace
    points: tuple[Point, ...]
    provider: Provider
    held: bool
    last_decision: Decision | None
    hold: Decision | None
    restarted: int
    rescaled: int
    history: tuple[RescaleRecord, ...]
    requirements_number: int
    exceptions: tuple[RunFailure, ...]
    savepoints: tuple[Savepoint, ...]
    saving: bool
    settings: CoreSettings
    application: CoreSettings
    plan: Plan | None = None
    reading: Reading | None = None

    @property
    def own_settings(self) -> dict[str, str]:
        """The settings that differ from the application's, as text by the name of the setting."""
        return {} if self.settings is self.application else own_texts(self.settings, self.application)

    @property
    def granted_slots(self) -> int | None:
        """The slots that a policy grants it, None if its declared bounds count alone."""
        return self.requirements.shuffle.granted

    @property
    def obstacle(self) -> Obstacle | None:
        """What keeps its state in the partitions of its checkpoint, None if it can be moved or has none."""
        facts = self.facts
        if not facts.stateful or self.partitions is None or untouched(facts, self.settings) is not None:
            return None
        reason = repartition_obstacle(facts, self.provider, self.settings)
        if reason is None:
            return None
        return Obstacle(reason, message(reason, before=self.partitions, provider=self.provider))

    def workload(self) -> Workload:
        """Return the inputs of its load. It costs a fit, so it is not called for each event."""
        return Workload(
            facts=self.facts,
            pace=self.pace,
            model=fit(Measurements(points=list(self.points)), self.provider),
            needed=self.declared.needed,
            most=sum(group.upper for group in self.declared.groups.values()),
            held=self.held,
            reading=self.reading,
        )


def wanted_slots(queries: Iterable[QueryView], maximum: int) -> int | None:
    """Return the slots that the groups of live queries want together, None if one wants all slots.

    `maximum` is the parallelism that counts as no bound.
    """
    live = (query.requirements for query in queries if query.state != FINISHED)
    wants = [group.wanted for group in joined_groups(live).values()]
    return None if any(slots >= maximum for slots in wants) else sum(wants)


@define
class Queries(Mapping[str, QueryView]):
    """Views of all queries, created on access."""

    _machines: Mapping[str, QueryMachine]
    _settings: CoreSettings
    _planner: Planner

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
            preparing=record.state.preparing,
            requirements=record.requirements,
            declared=record.declared,
            share=record.shares.now,
            last_progress=record.load.last_progress,
            pace=record.load.pace,
            points=tuple(record.load.measurements.points),
            provider=record.checkpoint.provider,
            held=record.run_state == "held",
            last_decision=record.told.decision,
            hold=record.told.holding,
            restarted=record.failures.restarted,
            rescaled=record.moves.count,
            history=tuple(record.history.records),
            requirements_number=record.history.requirements,
            exceptions=record.failures.exceptions,
            savepoints=record.savepoints,
            saving=any(order.kind == "savepoint" for order in record.orders.pending.values()),
            settings=record.settings or self._settings,
            application=self._settings,
            plan=self._planner.plan(query),
            reading=record.reading(record.settings or self._settings),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._machines)

    def __len__(self) -> int:
        return len(self._machines)
