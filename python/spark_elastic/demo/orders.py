"""Whether each executor came and went because a policy said so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from spark_elastic.demo.check import Check
from spark_elastic.demo.chronicle import Chronicle, ExecutorChange, Ordered
from spark_elastic.demo.following import executors_at

_MORE = "executors_wanted"
_FEWER = "executors_not_wanted"


def check_orders(chronicle: Chronicle) -> Check:
    """Check that each executor that came or went was ordered to, for a need that a policy has stated.

    Those that a cluster gives before anything was ordered are not counted.
    """
    name = "each executor came and went by a decision of the policy"
    if not chronicle.ordered:
        return Check(name=name, ok=False, found="nothing was ordered")
    found = list(_causes(chronicle.changes, chronicle.ordered))
    unasked = [f"executor {change.executor} {change.kind}" for change, order in found if order is None]
    if unasked or not found:
        return Check(name=name, ok=False, found=f"unasked: {', '.join(unasked)}" if unasked else "none did")
    came = Counter(order.why for change, order in found if order and change.kind == "added")
    went = Counter(order.why for change, order in found if order and change.kind != "added")
    return Check(
        name=name,
        ok="" not in came.keys() | went.keys(),
        found=f"{_counted(came, 'came')}, {_counted(went, 'went')}",
    )


def _causes(
    changes: Sequence[ExecutorChange], orders: Sequence[Ordered]
) -> Iterator[tuple[ExecutorChange, Ordered | None]]:
    """Pair what has changed with the order that led to it; one that goes in two steps counts once."""
    going: set[str] = set()
    for change in changes:
        if change.at < orders[0].at:
            continue
        if change.kind == "added":
            yield change, _request(change, changes, orders)
        elif change.executor not in going:
            going.add(change.executor)
            yield change, _release(change, orders)


def _request(
    change: ExecutorChange, changes: Sequence[ExecutorChange], orders: Sequence[Ordered]
) -> Ordered | None:
    """Return the last request for more, None if more have come than were requested."""
    requests = [order for order in orders if order.at <= change.at and order.total is not None]
    came_before = [one.at for one in changes if one.kind == "added" and one.at < change.at]
    # One that is under way when fewer are wanted comes all the same: what was requested when the one before
    # it came still counts.
    settled = sum(order.at <= max(came_before, default=0) for order in requests)
    most = max((order.total or 0 for order in requests[max(settled - 1, 0) :]), default=0)
    asked = [order for order in requests if order.reason == _MORE]
    return asked[-1] if asked and len(executors_at(changes, change.at)) <= most else None


def _release(change: ExecutorChange, orders: Sequence[Ordered]) -> Ordered | None:
    given = [order for order in orders if order.at <= change.at and order.reason == _FEWER]
    return next((order for order in given if change.executor in order.executors), None)


def _counted(reasons: Counter[str], what: str) -> str:
    """Say how many came or went, and for which reasons."""
    if not reasons:
        return f"none {what}"
    named = ", ".join(f"{count} {reason or 'for no reason'}" for reason, count in reasons.most_common())
    return f"{reasons.total()} {what} ({named})"
