"""The log of plain Spark as the events that the plugin would have sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from spark_elastic.core import events as ev
from spark_elastic.runtime.entries import Entry, EventEntry, Header
from spark_elastic.version import __version__
from spark_elastic_lab.advice.costs import warm
from spark_elastic_lab.advice.told import QueryLog, Told
from spark_elastic_lab.advice.trigger import Trigger

#: The first Spark that can re-partition state.
_MOVES_STATE = (4, 2)


def entries(told: Told, triggers: Mapping[str, Trigger]) -> Iterator[Entry]:
    """Yield the entries of the journal that a run with these triggers would have left."""
    yield Header(version=__version__, application=told.application, part=0, settings={})
    assert told.begin is not None
    found: list[ev.Event] = [
        ev.Snapshot(
            id="",
            at=told.begin,
            application=told.application,
            application_name=told.name,
            spark_version=told.spark,
            conf=told.conf,
        )
    ]
    for at, executor, cores in told.changes:
        if cores:
            found.append(ev.ExecutorAdded(id="", at=at, executor=executor, host="", cores=cores))
        else:
            found.append(ev.ExecutorRemoved(id="", at=at, executor=executor))
    for query in told.queries.values():
        found += _of_query(query, triggers[query.query], told)
    # Progress is known only when a micro-batch has ended; the last event shows how long the run was.
    found.append(ev.BatchStages(id="", at=told.end))
    found.sort(key=lambda event: event.at)
    yield from (EventEntry(event=event) for event in found)


def _of_query(query: QueryLog, trigger: Trigger, told: Told) -> Iterator[ev.Event]:
    if not query.batches:
        return
    begins, run = min(query.begins, query.batches[0].started), query.batches[-1].run
    yield ev.QuerySubmitted(id="", at=begins, facts=facts(query, trigger, told), run=run)
    yield ev.QueryStarted(id="", at=begins, query=query.query, run=run, partitions=_partitions(query))
    for one in query.batches:
        if one.work.tasks:
            yield ev.StageCompleted(
                id="", at=one.reported, query=query.query, batch=one.batch,
                tasks=one.work.tasks // one.work.stages, duration_ms=one.work.wall_ms,
            )  # fmt: skip
        yield ev.QueryProgress(
            id="",
            at=one.reported,
            query=query.query,
            run=one.run,
            batch=one.batch,
            started=one.started,
            duration_ms=one.took_ms,
            input_rows=one.rows,
            state_rows=one.state_rows,
            state_bytes=one.state_bytes,
            partitions=one.partitions or 1,
            records_behind=one.behind,
            sources=(ev.SourceRead(rows=one.rows, tasks=one.read.tasks or None),),
        )
    if query.ends is not None:
        yield ev.QueryTerminated(
            id="", at=max(query.ends, query.batches[-1].reported), query=query.query, run=run
        )


def facts(query: QueryLog, trigger: Trigger, told: Told) -> ev.QueryFacts:
    """Return the facts about a query, as the plugin would report them at its first start."""
    return ev.QueryFacts(
        query=query.query,
        name=query.name,
        stateful=query.stateful,
        trigger="processing_time",
        trigger_ms=trigger.interval_ms,
        session_partitions=_partitions(query),
        provider_chosen=False,
        provider="rocksdb" if query.rocksdb else "hdfs",
        checkpoint_format=1,
        in_place=not query.stateful,
        moves_state=moves_state(told.spark),
        sources=tuple(ev.SourceFacts(name=name) for name in query.sources),
    )


def moves_state(spark: str) -> bool:
    """Whether this version of Spark can re-partition state; True if the version is unknown."""
    major, _, rest = spark.partition(".")
    minor = rest.partition(".")[0]
    if not (major.isdigit() and minor.isdigit()):
        return True
    return (int(major), int(minor)) >= _MOVES_STATE


def _partitions(query: QueryLog) -> int:
    known = [one.partitions for one in warm(query.batches) or query.batches if one.partitions]
    return round(median(known)) if known else query.session_partitions
