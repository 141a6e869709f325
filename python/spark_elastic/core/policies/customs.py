"""All custom policies of one application: when each is asked, and what is said of its answers."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, field, frozen

from spark_elastic.core.policies.ask import AskPolicy, PolicyAnswered
from spark_elastic.core.policies.chain import Chain
from spark_elastic.core.policies.custom import Custom, CustomMetrics
from spark_elastic.core.policies.policy import Policy
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.policies.wish import Wish
from spark_elastic.core.turn import Turn


@frozen
class _Member:
    """A custom policy in a chain: it notes what it is shown, and wants what it wanted last."""

    name: str
    custom: Custom
    shown: dict[str, ClusterView] = field(factory=dict)

    def decide(self, view: ClusterView) -> Wish:
        self.shown[self.name] = view
        return self.custom.decide(self.name, view)


@define
class Customs:
    """The custom policies that are named, by name, and what each was shown last.

    `fresh` says that one has answered since the last decision.
    """

    fresh: bool = False
    _named: dict[str, Custom] = field(factory=dict)

    @property
    def metrics(self) -> Mapping[str, CustomMetrics]:
        """What is shown of those that have been asked."""
        return {name: custom.metrics for name, custom in sorted(self._named.items())}

    @property
    def retry_at(self) -> int | None:
        """When the next one is asked again that has failed (epoch ms), None: none has."""
        if not self._named:
            return None  # as nearly always, and each event asks
        times = (custom.retry_at for custom in self._named.values())
        return min((at for at in times if at is not None), default=None)

    def lost(self) -> None:
        """Note that nobody answers any more what was asked: another process has begun, or a snapshot came."""
        for custom in self._named.values():
            custom.lost()

    def happened(self) -> None:
        """Note that something has happened that policies may go by."""
        for custom in self._named.values():
            custom.stale = True

    def decide(
        self,
        names: tuple[str, ...],
        ours: Mapping[str, Policy],
        view: ClusterView,
        shown: dict[str, ClusterView],
    ) -> Wish:
        """Let a chain decide; those of its members that are not `ours` are custom.

        What it shows each of them is added to `shown`. One that is in several chains is shown each query as
        the chain of that query shows it.
        """
        seen: dict[str, ClusterView] = {}
        wish = Chain([ours.get(name) or self._member(name, seen) for name in names]).decide(view)
        for name, narrowed in seen.items():
            before = shown.get(name, view)
            own = {
                id: narrowed.queries[id] if query.settings.policy == names else query
                for id, query in before.queries.items()
            }
            shown[name] = evolve(before, queries=own)
        return wish

    def ask(self, shown: Mapping[str, ClusterView], turn: Turn) -> None:
        """Ask those that are to be asked now about what they are shown; forget those that nothing names."""
        for name, view in shown.items():
            custom = self._named[name]
            if custom.may_ask(turn.now):
                id = turn.next_action()
                custom.ask(id, view)
                turn.emit(AskPolicy(id=id, cause=turn.cause, policy=name, view=view))
        for name in self._named.keys() - shown.keys():  # it is not named any more
            del self._named[name]

    def answered(self, event: PolicyAnswered, turn: Turn) -> None:
        """Take in an answer; one to something that was not asked last concerns nobody."""
        custom = self._named.get(event.policy)
        if custom is None or custom.asked != event.asked:
            return
        before = custom.answered(event, turn.now)
        self.fresh = True
        if custom.failing is not None and before is None:
            again = custom.failing.retry_at - turn.now
            turn.report("policy_failed", policy=event.policy, error=custom.failing.error, again_ms=again)
        elif custom.failing is None and before is not None:
            silent = turn.now - before.since
            turn.report("policy_recovered", policy=event.policy, failures=before.failures, silent_ms=silent)

    def _member(self, name: str, seen: dict[str, ClusterView]) -> _Member:
        return _Member(name, self._named.setdefault(name, Custom()), seen)

    def validate(self) -> None:
        """Check what is known of each. Raises AssertionError."""
        for custom in self._named.values():
            custom.validate()
