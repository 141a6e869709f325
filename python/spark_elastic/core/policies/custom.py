"""Custom policies: their state between two answers, and the chains that they are part of.

The last answer of a policy counts until it answers again. A policy that fails is asked again with a growing
backoff, and its last wish stays in force.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, evolve, field, frozen

from spark_elastic.core.keys.policies import short
from spark_elastic.core.policies.policy import AskPolicy, Policy, PolicyAnswered, QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, SlotLimits
from spark_elastic.core.turn import Turn

FIRST_RETRY_MS = 10_000
"""The first backoff after a policy has failed; it doubles with each failure."""

LONGEST_RETRY_MS = 600_000

SPOKEN = "policy_says"
"""The reason of a custom policy's wish for a query, if the policy explains it in its own words."""

SPOKEN_OF_BATCH = "policy_says_batch"
"""The same for its wish for batch stages."""


@frozen(kw_only=True)
class Unanswered:
    """Why a policy has no answer: the last `error`, and `since` when it has failed (epoch ms).

    `failures` counts the failed requests since then, `retry_at` is when it is asked again (epoch ms).
    """

    error: str
    since: int
    failures: int
    retry_at: int


@frozen(kw_only=True)
class CustomMetrics:
    """Metrics of a custom policy: how often it has answered and failed, and why it fails now, if it does."""

    answers: int
    failures: int
    failing: Unanswered | None


@define(kw_only=True)
class Custom:
    """One custom policy: its last wish, and the queries that it has been asked about at least once (`known`).

    `asked` is the id of the request without an answer, None if there is none, and `about` are the queries
    that this request shows. `stale` says that something has happened since the policy was asked. `answers`
    and `failures` count all of them.
    """

    wish: Wish = field(factory=Wish)
    known: frozenset[str] = frozenset()
    asked: str | None = None
    about: frozenset[str] = frozenset()
    stale: bool = True
    failing: Unanswered | None = None
    answers: int = 0
    failures: int = 0

    @property
    def metrics(self) -> CustomMetrics:
        """The metrics to show for it."""
        return CustomMetrics(answers=self.answers, failures=self.failures, failing=self.failing)

    def may_ask(self, now: int) -> bool:
        """Return whether the policy should be asked now (epoch ms)."""
        ready = self.failing is None or now >= self.failing.retry_at
        return self.stale and self.asked is None and ready

    @property
    def retry_at(self) -> int | None:
        """When a failed policy is asked again (epoch ms), None if it works or is being asked."""
        return None if self.failing is None or self.asked is not None else self.failing.retry_at

    def lost(self) -> None:
        """Note that the open request will not be answered any more."""
        self.asked, self.stale = None, True

    def ask(self, id: str, view: ClusterView) -> None:
        """Note that the policy is asked."""
        self.asked, self.about, self.stale = id, frozenset(view.queries), False

    def answered(self, event: PolicyAnswered, now: int) -> Unanswered | None:
        """Process an answer; return why there was none until then, None if there was one."""
        before, self.asked = self.failing, None
        self.known = self.about
        if event.wish is not None:
            self.wish, self.failing = event.wish, None
            self.answers += 1
            return before
        self.failures += 1
        failures = 1 if before is None else before.failures + 1
        wait = min(LONGEST_RETRY_MS, FIRST_RETRY_MS << min(failures - 1, 20))
        self.failing = Unanswered(
            error=event.error or "", since=now if before is None else before.since, failures=failures,
            retry_at=now + wait,
        )  # fmt: skip
        self.stale = True
        return before

    def decide(self, name: str, view: ClusterView) -> Wish:
        """Return the last wish; a query that the policy has not been asked about keeps its slots.

        By its declared bounds alone, executors would be requested for such a query that may be unwanted a
        second later. A time to be asked again that has passed is left out. While the policy fails, it wants
        nothing for a query that it has not been asked about.
        """
        queries = {
            id: evolve(wish, until=_later(wish.until, view.at))
            for id, wish in self.wish.queries.items()
            if id in view.queries
        }
        if self.failing is None:
            new = (query for id, query in view.queries.items() if id not in self.known)
            queries.update((query.query, _waits(name, query)) for query in new)
        return evolve(self.wish, queries=queries, until=_later(self.wish.until, view.at))

    def validate(self) -> None:
        """Check that its state is consistent. Raises AssertionError."""
        assert self.failing is None or 1 <= self.failing.failures <= self.failures


def _later(until: int | None, at: int) -> int | None:
    return None if until is None or until <= at else until


def _waits(name: str, query: QueryMetrics) -> QueryWish:
    slots = query.granted or max(query.lower, min(query.upper, query.slots), 1)
    return QueryWish(slots=slots, reason="policy_awaited", numbers={"policy": short(name)})


# ---- Asks several policies one after the other, and combines their wishes into one.


@frozen
class Chain:
    """Policies in the order in which they are asked; a chain is itself a policy.

    Each policy sees the view with the limits of those before it. Limits add up, and the first stated takes
    precedence. Of several numbers of slots for a query the last one counts, of numbers of executors the
    largest, of times to be asked again the earliest.
    """

    members: Sequence[Policy]

    def decide(self, view: ClusterView) -> Wish:
        """Return the combined wish of all policies."""
        queries: dict[str, QueryWish] = {}
        limits: dict[str, tuple[SlotLimits, ...]] = {}
        together = Wish()
        for member in self.members:
            wish = member.decide(view)
            queries.update(wish.queries)
            stated = {query: more for query, more in wish.limits.items() if more and query in view.queries}
            for query, more in stated.items():
                limits[query] = (*limits.get(query, ()), *more)
            view = _limited(view, stated)
            together = joined(together, wish)
        return evolve(together, queries=queries, limits=limits)


def _limited(view: ClusterView, stated: Mapping[str, tuple[SlotLimits, ...]]) -> ClusterView:
    """Return the view with further limits on its queries."""
    if not stated:
        return view
    queries = {
        id: evolve(query, limits=(*query.limits, *stated[id])) if id in stated else query
        for id, query in view.queries.items()
    }
    return evolve(view, queries=queries)


def joined(one: Wish, other: Wish) -> Wish:
    """Combine what two wishes say about the whole application, leaving out what they say about queries."""
    times = [until for until in (one.until, other.until) if until is not None]
    most = max(one, other, key=lambda wish: -1 if wish.executors is None else wish.executors)
    return Wish(
        executors=most.executors,
        executors_by=most.executors_by,
        until=min(times, default=None),
        batch=one.batch if other.batch is None else other.batch,
    )


# ---- All custom policies of one application: when each is asked, and how its answers are reported.


@frozen
class _Member:
    """A custom policy in a chain: it records the view that it is shown, and returns its last wish."""

    name: str
    custom: Custom
    shown: dict[str, ClusterView] = field(factory=dict)

    def decide(self, view: ClusterView) -> Wish:
        self.shown[self.name] = view
        return self.custom.decide(self.name, view)


@define
class Customs:
    """The custom policies that the settings name, by name.

    `fresh` says that one has answered since the last decision.
    """

    fresh: bool = False
    _named: dict[str, Custom] = field(factory=dict)

    @property
    def metrics(self) -> Mapping[str, CustomMetrics]:
        """The metrics of those that have been asked."""
        return {name: custom.metrics for name, custom in sorted(self._named.items())}

    @property
    def retry_at(self) -> int | None:
        """When the next failed policy is asked again (epoch ms), None if none has failed."""
        if not self._named:
            return None  # a fast path: each event asks, and custom policies are rare
        times = (custom.retry_at for custom in self._named.values())
        return min((at for at in times if at is not None), default=None)

    def lost(self) -> None:
        """Note that open requests will not be answered: the process is a new one, or a snapshot arrived."""
        for custom in self._named.values():
            custom.lost()

    def happened(self) -> None:
        """Note that something has happened that policies may react to."""
        for custom in self._named.values():
            custom.stale = True

    def decide(
        self,
        names: tuple[str, ...],
        ours: Mapping[str, Policy],
        view: ClusterView,
        shown: dict[str, ClusterView],
    ) -> Wish:
        """Let a chain decide; its members that are not in `ours` are custom policies.

        The view that each of them sees is added to `shown`. A policy in several chains sees each query as the
        chain of that query shows it.
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
        """Ask the policies that should be asked now, with their views; forget those no longer named."""
        for name, view in shown.items():
            custom = self._named[name]
            if custom.may_ask(turn.now):
                id = turn.next_action()
                custom.ask(id, view)
                turn.emit(AskPolicy(id=id, cause=turn.cause, policy=name, view=view))
        for name in self._named.keys() - shown.keys():  # no longer named
            del self._named[name]

    def answered(self, event: PolicyAnswered, turn: Turn) -> None:
        """Process an answer; ignore it unless it belongs to the last request."""
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
        """Check the state of each policy. Raises AssertionError."""
        for custom in self._named.values():
            custom.validate()
