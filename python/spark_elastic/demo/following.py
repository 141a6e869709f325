"""Whether executors have come or gone by themselves, as the load has it, and have stayed so for a while."""

from __future__ import annotations

from collections.abc import Sequence

from spark_elastic.demo.chronicle import Chronicle, ExecutorChange
from spark_elastic.demo.steps import Deed, Outcome, Trend
from spark_elastic.demo.task_log import Tasks

STEADY_MS = 20_000
"""So long nothing has come or gone: a few micro-batches, after which a policy has said what it means to."""


def executors_at(changes: Sequence[ExecutorChange], moment: int) -> frozenset[str]:
    """Return the executors that took tasks at `moment` (epoch ms)."""
    there: set[str] = set()
    for change in changes:
        if change.at <= moment:
            (there.add if change.kind == "added" else there.discard)(change.executor)
    return frozenset(there)


def follow(outcome: Outcome, trend: Trend, chronicle: Chronicle, tasks: Tasks, now: int) -> None:
    """Compare a step that leads to a trend with what the journal says up to `now` (epoch ms).

    More are in force for a query when a task of it has begun on the first one that came, fewer with the first
    micro-batch that has begun since one went. It has settled when every executor that came has had tasks,
    nothing has changed for a while, and each query's last micro-batch fits into its interval.
    """
    changes = [change for change in chronicle.changes if change.at <= now]
    outcome.before = _most_before(outcome, changes)
    there = executors_at(changes, now)
    outcome.after = len(there)
    kinds = ("added",) if trend is Trend.MORE else ("decommissioning", "removed")
    since = [change for change in changes if change.at > outcome.acted]
    first = next((change for change in since if change.kind in kinds), None)
    if first is None:
        return
    outcome.executor, outcome.executor_at = first.executor, first.at
    for query in chronicle.queries.values():
        if trend is Trend.MORE:
            moment = tasks.first_on(first.executor, first.at, query.query)
        else:
            moment = next((batch.started for batch in query.batches if batch.started >= first.at), None)
        if moment is not None:
            outcome.in_force.setdefault(query.name, moment)
    gone_right = outcome.after > outcome.before if trend is Trend.MORE else outcome.after < outcome.before
    used = all(tasks.first_on(one, 0) is not None for one in there)
    steady = now - since[-1].at >= STEADY_MS
    if gone_right and used and steady and all(query.is_in_time for query in chronicle.queries.values()):
        outcome.settled = now


def _most_before(outcome: Outcome, changes: Sequence[ExecutorChange]) -> int:
    """Count the executors from which the trend counts: at the start, the most that have ever been there."""
    if outcome.step.deed is not Deed.START:
        return len(executors_at(changes, outcome.acted))
    return max((len(executors_at(changes, change.at)) for change in changes), default=0)
