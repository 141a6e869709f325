"""Adaptive mode: a query keeps within the bounds that were declared for it.

Who declares nothing gets Flink's defaults: from 1 up to what the query was configured with.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements, Vertex, source_vertex
from spark_elastic.core.bounds.sharing import NOTHING_WANTED, WantedSharing, sharing, sharing_by_name
from spark_elastic.core.events import PolicyFileChanged, QueryFacts
from spark_elastic.core.name_patterns import merged
from spark_elastic.core.settings import CoreSettings


def max_parallelism(facts: QueryFacts, settings: CoreSettings) -> Mapping[str, int]:
    """Return the vertices of a query, each with the most that its upper bound can be."""
    sources = map(source_vertex, range(len(facts.sources)))
    return dict.fromkeys((SHUFFLE, *sources), settings.max_parallelism)


def requirements(
    facts: QueryFacts,
    settings: CoreSettings,
    bounds: Mapping[str, Bounds] | None,
    wanted: WantedSharing = NOTHING_WANTED,
) -> Requirements:
    """Let a query have what was declared for it, or the defaults; never more than its max parallelism.

    `bounds` is by vertex id, as `bounds.declared` gives them, None if nothing was declared; `wanted` is how
    it shares slots. A source without an upper bound of its own demands no slots: it is read with those that
    the shuffle has.
    """
    declared = (bounds or {}).get(SHUFFLE)
    wide, bound_by = (
        _defaults(facts, settings) if declared is None else (declared, "the declared upper bound")
    )
    maximum = settings.max_parallelism
    if wide.upper >= maximum:
        bound_by = "spark.elastic.maxParallelism"

    open_ = Bounds(upper=maximum)
    # Who declares no more than the widest bounds declares none. A policy that measures declares some for all.
    bounded = settings.measures or any(declared != open_ for declared in (bounds or {}).values())
    shares = sharing(facts.query, wanted, bounded=bounded)

    def vertex(id: str, bounds: Bounds) -> Vertex:
        # A user's own count can be above the maximum, and so can bounds from before that was lowered.
        within = bounds.at_most(maximum)
        demands = id == SHUFFLE or within.upper < maximum
        group = shares.group_of(id)
        return Vertex(id=id, group=group, bounds=within, demands=demands, weight=shares.weight)

    sources = map(source_vertex, range(len(facts.sources)))
    read = (vertex(source, (bounds or {}).get(source, open_)) for source in sources)
    vertices = (vertex(SHUFFLE, wide), *read)
    return Requirements(vertices=vertices, bound_by=bound_by, priority=shares.priority)


def _defaults(facts: QueryFacts, settings: CoreSettings) -> tuple[Bounds, str]:
    """Return the bounds of a vertex for which nothing was declared, and what the upper one comes from."""
    explicit = facts.explicit_partitions
    if explicit is None or settings.explicit_parallelism == "ignore":
        return Bounds(upper=settings.max_parallelism), "spark.elastic.maxParallelism"
    if settings.explicit_parallelism == "fixed":
        fixed_by = "spark.sql.shuffle.partitions, which spark.elastic.explicitParallelism fixes,"
        return Bounds(lower=explicit, upper=explicit), fixed_by
    return Bounds(upper=explicit), "spark.sql.shuffle.partitions, as an upper bound,"


def wanted_by_file(facts: QueryFacts, file: PolicyFileChanged) -> Mapping[str, WantedBounds]:
    """Return what a policy file says about a query: under its name, else by the defaults of the file.

    A vertex of which the file says nothing is not there. One that the query does not have is: `declare_some`
    refuses it.
    """
    unnamed = {} if file.defaults is None else {SHUFFLE: file.defaults}
    return {**unnamed, **merged(facts.name, file.bounds)}


def sharing_by_file(facts: QueryFacts, file: PolicyFileChanged) -> WantedSharing:
    """Return how a query shares slots by a policy file: under its name, else by the defaults of the file."""
    return sharing_by_name(facts.name, file.sharing).over(file.default_sharing)
