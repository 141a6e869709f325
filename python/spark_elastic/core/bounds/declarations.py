"""Who has declared which bounds for which query, and how it shares slots.

Bounds come from the application's settings, from the policy file and from requests, in this order: what
was said later counts. A change of the file that says something else about a query takes the place of an
earlier request; so does one that was made while the request was only kept beside the checkpoint (`kept.py`).
What cannot be applied to a query is left out, and said; the bounds before it stay. How a query shares slots
is not asked for by requests: Flink's form of a request has no place for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from spark_elastic.core.bounds import adaptive, reactive
from spark_elastic.core.bounds.declared import Accepted, Refused, WantedBounds, declare_some, unknown_vertex
from spark_elastic.core.bounds.kept import Requested, read
from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements
from spark_elastic.core.bounds.sharing import WantedSharing, sharing_by_name
from spark_elastic.core.events import PolicyFileChanged, QueryFacts, RequirementsRequested
from spark_elastic.core.name_patterns import merged
from spark_elastic.core.own_settings import settings_of
from spark_elastic.core.settings import CoreSettings


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
            return reactive.requirements(facts, settings), ()
        sharing, problems = self._sharing(facts, settings)
        requested = self._requested.get(facts.query)
        if requested is not None:
            return adaptive.requirements(facts, settings, requested.bounds, sharing), ()
        bounds: Mapping[str, Bounds] | None = None
        for wanted in (self._from_settings(facts), self._from_file(facts)):
            if wanted:
                vertices = adaptive.requirements(facts, settings, bounds).vertices
                kept = {vertex.id: vertex.bounds for vertex in vertices}
                match declare_some(adaptive.max_parallelism(facts, settings), wanted, kept):
                    case Refused(problems=found):
                        problems += (problem.message for problem in found)
                    case Accepted(vertices=accepted):
                        bounds = accepted
        return adaptive.requirements(facts, settings, bounds, sharing), tuple(problems)

    def _sharing(self, facts: QueryFacts, settings: CoreSettings) -> tuple[WantedSharing, list[str]]:
        """Give what counts of settings and file, and which vertices are named there that the query lacks."""
        wanted = sharing_by_name(facts.name, self.settings.sharing)
        if self._file is not None:
            wanted = adaptive.sharing_by_file(facts, self._file).over(wanted)
        known = adaptive.max_parallelism(facts, settings)
        problems = [unknown_vertex(vertex, known).message for vertex in wanted.groups if vertex not in known]
        return wanted, problems

    def _from_settings(self, facts: QueryFacts) -> Mapping[str, WantedBounds]:
        shuffle = {name: {SHUFFLE: bounds} for name, bounds in self.settings.bounds.items()}
        return {**merged(facts.name, shuffle), **merged(facts.name, self.settings.source_bounds)}

    def _from_file(self, facts: QueryFacts) -> Mapping[str, WantedBounds]:
        if self._file is None:
            return {}
        return adaptive.wanted_by_file(facts, self._file)
