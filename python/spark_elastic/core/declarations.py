"""The bounds that are declared for each query, their origin, and how queries share slots.

Bounds come from the application's settings, from the policy file and from requests, in this order; later ones
take precedence. A change of the file that alters what it says about a query replaces an earlier request. So
does a change that was made while the request was only kept beside the checkpoint (`kept.py`). Declarations
that cannot be applied to a query are left out and reported; the previous bounds stay in force. Requests
cannot say how a query shares slots: Flink's form of a request has no field for it.
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

# ---- Adaptive mode: a query keeps within the bounds that were declared for it. Without a declaration it gets
# Flink's defaults: from 1 up to the parallelism that it was configured with.


def max_parallelism(facts: QueryFacts, settings: CoreSettings) -> Mapping[str, int]:
    """Return the vertices of a query, each with the maximum of its upper bound."""
    sources = map(source_vertex, range(len(facts.sources)))
    return dict.fromkeys((SHUFFLE, *sources), settings.max_parallelism)


def adaptive_requirements(
    facts: QueryFacts,
    settings: CoreSettings,
    bounds: Mapping[str, Bounds] | None,
    wanted: WantedSharing = NOTHING_WANTED,
) -> Requirements:
    """Return the declared bounds of a query, or the defaults, never above its max parallelism.

    `bounds` is by vertex id, as `bounds.declared` returns it, None if nothing was declared; `wanted` is how
    the query shares slots. A source without an upper bound of its own demands no slots: it is read with the
    slots of the shuffle.
    """
    declared = (bounds or {}).get(SHUFFLE)
    wide, bound_by = (
        _defaults(facts, settings) if declared is None else (declared, "the declared upper bound")
    )
    maximum = settings.max_parallelism
    if wide.upper >= maximum:
        bound_by = "spark.elastic.maxParallelism"

    open_ = Bounds(upper=maximum)
    # Declaring only the widest bounds counts as declaring none. A policy that measures declares some for all.
    bounded = settings.measures or any(declared != open_ for declared in (bounds or {}).values())
    shares = sharing(facts.query, wanted, bounded=bounded)

    def vertex(id: str, bounds: Bounds) -> Vertex:
        # A user's own count can exceed the maximum. So can bounds that date from before it was lowered.
        within = bounds.at_most(maximum)
        demands = id == SHUFFLE or within.upper < maximum
        group = shares.group_of(id)
        return Vertex(id=id, group=group, bounds=within, demands=demands, weight=shares.weight)

    sources = map(source_vertex, range(len(facts.sources)))
    read = (vertex(source, (bounds or {}).get(source, open_)) for source in sources)
    vertices = (vertex(SHUFFLE, wide), *read)
    return Requirements(vertices=vertices, bound_by=bound_by, priority=shares.priority)


def _defaults(facts: QueryFacts, settings: CoreSettings) -> tuple[Bounds, str]:
    """Return the bounds of a vertex without a declaration, and the origin of the upper bound."""
    explicit = facts.explicit_partitions
    if explicit is None or settings.explicit_parallelism == "ignore":
        return Bounds(upper=settings.max_parallelism), "spark.elastic.maxParallelism"
    if settings.explicit_parallelism == "fixed":
        fixed_by = "spark.sql.shuffle.partitions, which spark.elastic.explicitParallelism fixes,"
        return Bounds(lower=explicit, upper=explicit), fixed_by
    return Bounds(upper=explicit), "spark.sql.shuffle.partitions, as an upper bound,"


def wanted_by_file(facts: QueryFacts, file: PolicyFileChanged) -> Mapping[str, WantedBounds]:
    """Return what a policy file says about a query: under its name, else by the defaults of the file.

    Vertices that the file does not mention are absent. Vertices that the query does not have are present:
    `declare_some` refuses them.
    """
    unnamed = {} if file.defaults is None else {SHUFFLE: file.defaults}
    return {**unnamed, **merged(facts.name, file.bounds)}


def sharing_by_file(facts: QueryFacts, file: PolicyFileChanged) -> WantedSharing:
    """Return how a query shares slots by a policy file: under its name, else by the defaults of the file."""
    return sharing_by_name(facts.name, file.sharing).over(file.default_sharing)


# ---- Reactive mode: a query uses all available slots, up to its maximum. Their number depends on the workers
# that are added and removed; this mode requests none. All queries are in one slot-sharing group: Spark's own
# scheduler shares the slots out between their tasks.


def reactive_requirements(facts: QueryFacts, settings: CoreSettings) -> Requirements:
    """Return bounds from 1 to the maximum, or to the user's own count where that is a lower upper bound."""
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
    """Everything declared for the queries of one application: bounds, slot sharing, settings.

    Reactive mode has no bounds.
    """

    settings: CoreSettings
    _file: PolicyFileChanged | None = None
    _requested: dict[str, Requested] = field(factory=dict)

    @property
    def file(self) -> PolicyFileChanged | None:
        """The policy file in force."""
        return self._file

    def file_changed(self, event: PolicyFileChanged, queries: Mapping[str, QueryFacts]) -> list[str]:
        """Take over the policy file; `queries` are the known ones, by id.

        Return those whose requests no longer count because of it.
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
        """Take over a request, which has been checked already; `facts` is None for an unknown query."""
        wanted = {
            vertex: Bounds(lower=lower, upper=upper, target=asked.targets.get(vertex))
            for vertex, (lower, upper) in asked.bounds.items()
        }
        file = {} if facts is None else self._from_file(facts)
        self._requested[asked.query] = requested = Requested(bounds=wanted, file=file)
        return requested

    def request_of(self, query: str) -> Requested | None:
        """Return the bounds that were requested, None if no request counts."""
        return self._requested.get(query)

    def recall(self, facts: QueryFacts) -> tuple[Requested, bool] | None:
        """Take over the bounds kept beside the checkpoint, unless others were requested since.

        Return them and whether they count, or None if nothing is kept or the request is known already. Raises
        UnusableText.
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
        """Return the settings of a query, None if they are the application's, and the problems with them."""
        return settings_of(facts.name, self.settings, self._file, running)

    def forget(self, query: str) -> None:
        """Forget the request for a query."""
        self._requested.pop(query, None)

    def requirements(
        self, facts: QueryFacts, own: CoreSettings | None = None
    ) -> tuple[Requirements, tuple[str, ...]]:
        """Return what a query may have, and the problems with its bounds in the file.

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
        """Return the sharing by settings and file, and the vertices named there that the query lacks."""
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


# ---- Keeps requested bounds beside the checkpoints of queries, and recalls them.


def keep_bounds(record: QueryRecord, requested: Requested | None, turn: Turn) -> None:
    """Order that these bounds outlive the driver, None that none do; with advice only, nothing is kept."""
    if not turn.settings.advise_only:
        keep_text(record, "bounds", None if requested is None else write(requested), turn)


def recall_bounds(facts: ev.QueryFacts, declarations: Declarations, turn: Turn) -> bool:
    """Take over the bounds kept beside a query's checkpoint; return whether they are outdated."""
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
    """Repeat the order to keep bounds that a snapshot does not show: the first order may be lost."""
    for record in live:
        requested = declarations.request_of(record.facts.query)
        info = shown.get(record.facts.query)
        if requested is not None and info is not None and info.facts.kept_bounds != write(requested):
            keep_bounds(record, requested, turn)
