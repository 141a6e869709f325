"""Who has declared which bounds for which query, and how it shares slots.

Bounds come from the application's settings, from the policy file and from requests, in this order: what
was said later counts. A change of the file that says something else about a query takes the place of an
earlier request; so does one that was made while the request was only kept beside the checkpoint (`kept.py`).
What cannot be applied to a query is left out, and said; the bounds before it stay. How a query shares slots
is not asked for by requests: Flink's form of a request has no place for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.declared import (
    NOTHING_WANTED,
    Accepted,
    Refused,
    WantedBounds,
    WantedSharing,
    declare_some,
    sharing,
    sharing_by_name,
    unknown_vertex,
)
from spark_elastic.core.bounds.kept import Requested, UnusableText, read, write
from spark_elastic.core.bounds.requirements import (
    DEFAULT_GROUP,
    SHUFFLE,
    Bounds,
    Requirements,
    Vertex,
    source_vertex,
)
from spark_elastic.core.events import PolicyFileChanged, QueryFacts, RequirementsRequested
from spark_elastic.core.name_patterns import merged
from spark_elastic.core.own_settings import settings_of
from spark_elastic.core.query.record import QueryRecord, keep_text
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Turn

# Adaptive mode: a query keeps within the bounds that were declared for it.
# Who declares nothing gets Flink's defaults: from 1 up to what the query was configured with.


def max_parallelism(facts: QueryFacts, settings: CoreSettings) -> Mapping[str, int]:
    """Return the vertices of a query, each with the most that its upper bound can be."""
    sources = map(source_vertex, range(len(facts.sources)))
    return dict.fromkeys((SHUFFLE, *sources), settings.max_parallelism)


def adaptive_requirements(
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


# Reactive mode: a query uses all the slots that are there, up to its maximum.
# How many there are is decided by whoever adds and removes workers; this mode asks for none. All queries are
# in one slot-sharing group: Spark's own scheduler shares the slots out between their tasks.


def reactive_requirements(facts: QueryFacts, settings: CoreSettings) -> Requirements:
    """Let a query have 1 to its maximum, lowered to the user's own count where that is an upper bound."""
    upper = settings.max_parallelism
    bound_by = "spark.elastic.maxParallelism"
    explicit = facts.explicit_partitions
    if settings.explicit_parallelism == "upperBound" and explicit is not None and explicit < upper:
        upper = explicit
        bound_by = "spark.sql.shuffle.partitions, as an upper bound,"
    vertex = Vertex(id=SHUFFLE, group=DEFAULT_GROUP, bounds=Bounds(lower=1, upper=upper))
    return Requirements(vertices=(vertex,), bound_by=bound_by)


@define
class Declarations:
    """What is declared for the queries of one application: bounds, how they share slots, settings.

    In reactive mode there are no bounds.
    """

    settings: CoreSettings
    _file: PolicyFileChanged | None = None
    _requested: dict[str, Requested] = field(factory=dict)

    @property
    def file(self) -> PolicyFileChanged | None:
        """The policy file that is in force."""
        return self._file

    def file_changed(self, event: PolicyFileChanged, queries: Mapping[str, QueryFacts]) -> list[str]:
        """Take over the policy file; `queries` are those that are known, by id.

        Return those whose requests no longer count by that.
        """
        self._file = event
        outdated = [
            query
            for query, facts in queries.items()
            if query in self._requested and self._requested[query].is_older_than(self._from_file(facts))
        ]
        for query in outdated:
            del self._requested[query]
        return outdated

    def requested(self, asked: RequirementsRequested, facts: QueryFacts | None) -> Requested:
        """Take over what somebody asked for; it has been checked. `facts` None: the query is not known."""
        wanted = {
            vertex: Bounds(lower=lower, upper=upper, target=asked.targets.get(vertex))
            for vertex, (lower, upper) in asked.bounds.items()
        }
        file = {} if facts is None else self._from_file(facts)
        self._requested[asked.query] = requested = Requested(bounds=wanted, file=file)
        return requested

    def request_of(self, query: str) -> Requested | None:
        """Return what somebody has asked for, None if nothing counts."""
        return self._requested.get(query)

    def recall(self, facts: QueryFacts) -> tuple[Requested, bool] | None:
        """Take over what is kept beside the checkpoint, unless something was asked for since.

        Return it, and whether it counts; None: nothing is kept, or it is known. Raises Unusable.
        """
        if facts.kept_bounds is None or facts.query in self._requested:
            return None
        kept = read(facts.kept_bounds)
        counts = not kept.is_older_than(self._from_file(facts))
        if counts:
            self._requested[facts.query] = kept
        return kept, counts

    def settings_of(
        self, facts: QueryFacts, running: CoreSettings | None = None
    ) -> tuple[CoreSettings | None, tuple[str, ...]]:
        """Give the settings of a query, None if they are the application's, and what was wrong with them."""
        return settings_of(facts.name, self.settings, self._file, running)

    def forget(self, query: str) -> None:
        """Let go of what was asked for."""
        self._requested.pop(query, None)

    def requirements(
        self, facts: QueryFacts, own: CoreSettings | None = None
    ) -> tuple[Requirements, tuple[str, ...]]:
        """Give what a query may have, and what was wrong with its bounds in the file.

        `own` are the settings of the query, None if it has those of the application.
        """
        settings = own or self.settings
        if settings.mode != "adaptive":
            return reactive_requirements(facts, settings), ()
        sharing, problems = self._sharing(facts, settings)
        requested = self._requested.get(facts.query)
        if requested is not None:
            return adaptive_requirements(facts, settings, requested.bounds, sharing), ()
        bounds: Mapping[str, Bounds] | None = None
        for wanted in (self._from_settings(facts), self._from_file(facts)):
            if wanted:
                vertices = adaptive_requirements(facts, settings, bounds).vertices
                kept = {vertex.id: vertex.bounds for vertex in vertices}
                match declare_some(max_parallelism(facts, settings), wanted, kept):
                    case Refused(problems=found):
                        problems += (problem.message for problem in found)
                    case Accepted(vertices=accepted):
                        bounds = accepted
        return adaptive_requirements(facts, settings, bounds, sharing), tuple(problems)

    def _sharing(self, facts: QueryFacts, settings: CoreSettings) -> tuple[WantedSharing, list[str]]:
        """Give what counts of settings and file, and which vertices are named there that the query lacks."""
        wanted = sharing_by_name(facts.name, self.settings.sharing)
        if self._file is not None:
            wanted = sharing_by_file(facts, self._file).over(wanted)
        known = max_parallelism(facts, settings)
        problems = [unknown_vertex(vertex, known).message for vertex in wanted.groups if vertex not in known]
        return wanted, problems

    def _from_settings(self, facts: QueryFacts) -> Mapping[str, WantedBounds]:
        shuffle = {name: {SHUFFLE: bounds} for name, bounds in self.settings.bounds.items()}
        return {**merged(facts.name, shuffle), **merged(facts.name, self.settings.source_bounds)}

    def _from_file(self, facts: QueryFacts) -> Mapping[str, WantedBounds]:
        if self._file is None:
            return {}
        return wanted_by_file(facts, self._file)


# Has bounds that somebody asked for kept beside the checkpoints of queries, and takes them up.


def keep_bounds(record: QueryRecord, requested: Requested | None, turn: Turn) -> None:
    """Order that these bounds outlive the driver, None: that none do; who only advises keeps nothing."""
    if not turn.settings.advise_only:
        keep_text(record, "bounds", None if requested is None else write(requested), turn)


def recall_bounds(facts: ev.QueryFacts, declarations: Declarations, turn: Turn) -> bool:
    """Take up the bounds that are kept beside a query's checkpoint; return whether they are outdated."""
    try:
        recalled = declarations.recall(facts)
    except UnusableText as error:
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
