"""Has bounds that somebody asked for kept beside the checkpoints of queries, and takes them up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.declarations import Declarations
from spark_elastic.core.bounds.kept import Requested, write
from spark_elastic.core.keep_orders import keep_text
from spark_elastic.core.kept_text import Unusable
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.turn import Turn


def keep_bounds(record: QueryRecord, requested: Requested | None, turn: Turn) -> None:
    """Order that these bounds outlive the driver, None: that none do; who only advises keeps nothing."""
    if not turn.settings.advise_only:
        keep_text(record, "bounds", None if requested is None else write(requested), turn)


def recall_bounds(facts: ev.QueryFacts, declarations: Declarations, turn: Turn) -> bool:
    """Take up the bounds that are kept beside a query's checkpoint; return whether they are outdated."""
    try:
        recalled = declarations.recall(facts)
    except Unusable as error:
        turn.report("kept_bounds_unusable", query=facts.query, error=str(error))
        return False
    if recalled is None:
        return False
    kept, counts = recalled
    reason = "bounds_recalled" if counts else "kept_bounds_outdated"
    turn.report(reason, query=facts.query, bounds=kept.shown)
    return not counts


def keep_again(
    live: Iterable[QueryRecord], shown: Mapping[str, ev.QueryInfo], declarations: Declarations, turn: Turn
) -> None:
    """Order again that bounds are kept which a snapshot does not show: the first order may be lost."""
    for record in live:
        requested = declarations.request_of(record.facts.query)
        info = shown.get(record.facts.query)
        if requested is not None and info is not None and info.facts.kept_bounds != write(requested):
            keep_bounds(record, requested, turn)
