"""Puts together what a policy sees of the application."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.cluster.slots import SlotPool
from spark_elastic.core.cluster.supply import Supply
from spark_elastic.core.policies.memory import QueryMemory
from spark_elastic.core.policies.view import BatchMetrics, ClusterView, ExecutorMetrics, QueryMetrics
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.rescale.situation import is_movable
from spark_elastic.core.settings import CoreSettings


def query_metrics(record: QueryRecord, memory: QueryMemory, settings: CoreSettings) -> QueryMetrics:
    """Show one query; `settings` are those of the application."""
    progress = record.last_progress
    own = record.settings or settings
    return QueryMetrics(
        query=record.facts.query,
        facts=record.facts,
        settings=own,
        requirements=record.declared,
        limited=memory.limits,
        slots=record.known_share.slots,
        partitions=record.partitions,
        held=record.run_state == "held",
        idle=record.pace.idle,
        moving=any(order.kind == "rescale" for order in record.orders.values()),
        movable=is_movable(record.facts, record.provider, record.checkpoint_format, own),
        samples=memory.samples,
        earlier=memory.earlier,
        applied=memory.applied,
        wanted=memory.wanted,
        granted=memory.granted,
        granted_at=memory.granted_at,
        raised_at=memory.raised_at,
        pauses_ms=memory.pauses_ms,
        state_bytes=0 if progress is None else progress.state_bytes,
        throttled=bool(memory.throttled),
    )


def cluster_view(
    at: int,
    settings: CoreSettings,
    pool: SlotPool,
    supply: Supply,
    since: Mapping[str, int],
    startups_ms: tuple[int, ...],
    least_executors: int,
    queries: Mapping[str, QueryMetrics],
    *,
    waiting: tuple[tuple[int, int], ...] = (),
    needed: int = 0,
    batch: BatchMetrics | None = None,
) -> ClusterView:
    """Show the application; `since` is when each executor came (epoch ms)."""
    executors = tuple(
        ExecutorMetrics(executor=id, slots=slots, since=since.get(id, at), held_bytes=pool.held_bytes(id))
        for id, slots in pool.usable.items()
    )
    return ClusterView(
        at=at,
        mode=settings.mode,
        settings=settings,
        slots=pool.total,
        usual_slots=max(pool.usable.values(), default=supply.demand.usual_slots),
        executors=executors,
        requested=supply.demand.requested,
        least_executors=least_executors,
        waiting=waiting,
        startups_ms=startups_ms,
        needed=needed,
        queries=queries,
        batch=batch,
    )
