"""Reactive mode: a query uses all the slots that are there, up to its maximum.

How many there are is decided by whoever adds and removes workers; this mode asks for none. All queries are in
one slot-sharing group: Spark's own scheduler shares the slots out between their tasks.
"""

from __future__ import annotations

from spark_elastic.core.bounds.requirements import DEFAULT_GROUP, SHUFFLE, Bounds, Requirements, Vertex
from spark_elastic.core.events import QueryFacts
from spark_elastic.core.settings import CoreSettings


def requirements(facts: QueryFacts, settings: CoreSettings) -> Requirements:
    """Let a query have 1 to its maximum, lowered to the user's own count where that is an upper bound."""
    upper = settings.max_parallelism
    bound_by = "spark.elastic.maxParallelism"
    explicit = facts.explicit_partitions
    if settings.explicit_parallelism == "upperBound" and explicit is not None and explicit < upper:
        upper = explicit
        bound_by = "spark.sql.shuffle.partitions, as an upper bound,"
    vertex = Vertex(id=SHUFFLE, group=DEFAULT_GROUP, bounds=Bounds(lower=1, upper=upper))
    return Requirements(vertices=(vertex,), bound_by=bound_by)
