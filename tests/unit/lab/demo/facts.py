"""Short ways to build journal entries, for tests of the demonstration."""

from __future__ import annotations

from spark_elastic.core.actions import Decision, Report
from spark_elastic.core.events import (
    ExecutorAdded,
    ExecutorDecommissioning,
    ExecutorRemoved,
    OffsetsBehind,
    QueryFacts,
    QueryProgress,
    QuerySubmitted,
    QueryTerminated,
    Snapshot,
)
from spark_elastic.core.reasons.catalogue import REASONS


def snapshot(at: int = 0) -> Snapshot:
    return Snapshot(id="s1", at=at, application="app-1", application_name="lines", spark_version="4.2.0")


def added(executor: str, at: int) -> ExecutorAdded:
    return ExecutorAdded(id=f"s{at}", at=at, executor=executor, host="localhost", cores=1)


def removed(executor: str, at: int) -> ExecutorRemoved:
    return ExecutorRemoved(id=f"s{at}", at=at, executor=executor, reason="lost")


def decommissioning(executor: str, at: int) -> ExecutorDecommissioning:
    return ExecutorDecommissioning(id=f"s{at}", at=at, executor=executor)


def submitted(query: str, at: int = 0, *, stateful: bool = False, moves_state: bool = True) -> QuerySubmitted:
    facts = QueryFacts(
        query=query,
        name=query,
        stateful=stateful,
        trigger="processing_time",
        trigger_ms=1000,
        session_partitions=200,
        provider_chosen=False,
        provider="hdfs",
        checkpoint_format=1,
        in_place=not stateful,
        moves_state=moves_state,
    )
    return QuerySubmitted(id=f"s{at}", at=at, facts=facts, run="run-1")


def progress(
    query: str,
    batch: int,
    started: int,
    partitions: int,
    *,
    rows: int = 10,
    behind: OffsetsBehind | None = None,
) -> QueryProgress:
    return QueryProgress(
        id=f"s{started}",
        at=started + 300,
        query=query,
        run="run-1",
        batch=batch,
        started=started,
        duration_ms=300,
        input_rows=rows,
        input_rows_per_second=float(rows),
        partitions=partitions,
        offsets_behind=behind,
    )


def terminated(query: str, at: int, error: str | None = None) -> QueryTerminated:
    return QueryTerminated(id=f"s{at}", at=at, query=query, run="run-1", error=error)


def report(
    query: str | None,
    message: str,
    number: int = 1,
    reason: str = "in_place",
    *,
    at: int = 0,
    before: int | None = None,
    after: int | None = None,
) -> Report:
    decision = Decision(
        number=number,
        query=query,
        at=at,
        before=before,
        after=after,
        kind=REASONS[reason].kind,
        reason=reason,
        message=message,
        cause="s1",
    )
    return Report(id=f"a{number}", cause="s1", decision=decision)


class Ran:
    """The time of the first task on each executor, of any query."""

    def __init__(self) -> None:
        self.at: dict[str, int] = {}

    def first_on(self, executor: str, moment: int, query: str | None = None) -> int | None:
        at = self.at.get(executor)
        return at if at is not None and at >= moment else None
