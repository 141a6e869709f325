"""Who has declared which bounds for which query, and how it shares slots.

Bounds come from the application's settings, from the policy file and from requests, in this order: what
was said later counts. A change of the file that says something about a query takes the place of an earlier
request. What cannot be applied to a query is left out, and said; the bounds before it stay. How a query
shares slots is not asked for by requests: Flink's form of a request has no place for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from spark_elastic.core.bounds import adaptive, reactive
from spark_elastic.core.bounds.declared import Declared, Refused, WantedBounds, declare_some, unknown_vertex
from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements
from spark_elastic.core.bounds.sharing import WantedSharing, sharing_by_name
from spark_elastic.core.events import PolicyFileChanged, QueryFacts
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
    _requested: dict[str, Mapping[str, Bounds]] = field(factory=dict)

    @property
    def file(self) -> PolicyFileChanged | None:
        """The policy file that is in force."""
        return self._file

    def file_changed(self, event: PolicyFileChanged, queries: Mapping[str, QueryFacts]) -> None:
        """Take over the policy file; `queries` are those that are known, by id."""
        self._file = event
        for query, facts in queries.items():
            if adaptive.wanted_by_file(facts, event):
                self._requested.pop(query, None)

    def requested(self, query: str, bounds: Mapping[str, tuple[int, int]]) -> None:
        """Take over what somebody asked for; it has been checked."""
        self._requested[query] = {
            vertex: Bounds(lower=lower, upper=upper) for vertex, (lower, upper) in bounds.items()
        }

    def settings_of(
        self, facts: QueryFacts, running: CoreSettings | None = None
    ) -> tuple[CoreSettings | None, tuple[str, ...]]:
        """Give the settings of a query, None if they are the application's, and what was wrong with them."""
        return settings_of(facts.name, self.settings, self._file, running)

    def forget(self, query: str) -> None:
        """Let go of a query that is long over."""
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
        bounds: Mapping[str, Bounds] | None = self._requested.get(facts.query)
        if bounds is not None:
            return adaptive.requirements(facts, settings, bounds, sharing), ()
        for wanted in (self._from_settings(facts), self._from_file(facts)):
            if wanted:
                vertices = adaptive.requirements(facts, settings, bounds).vertices
                kept = {vertex.id: vertex.bounds for vertex in vertices}
                match declare_some(adaptive.max_parallelism(facts, settings), wanted, kept):
                    case Refused(problems=found):
                        problems += (problem.message for problem in found)
                    case Declared(vertices=accepted):
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
