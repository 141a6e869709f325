"""Custom policies: how they are named, and what is known of one between two of its answers.

What one has answered last counts until it answers again. One that fails is asked again later and later, and
what it has wanted before stays as it is.
"""

from __future__ import annotations

from attrs import define, evolve, field, frozen

from spark_elastic.core.keys.policies import short
from spark_elastic.core.policies.ask import PolicyAnswered
from spark_elastic.core.policies.view import ClusterView, QueryMetrics
from spark_elastic.core.policies.wish import QueryWish, Wish

FIRST_RETRY_MS = 10_000
"""How long a policy that has failed is left alone, twice as long each time."""

LONGEST_RETRY_MS = 600_000

SPOKEN = "policy_says"
"""The reason of what a custom policy wants for a query and has found words of its own for."""

SPOKEN_OF_BATCH = "policy_says_batch"
"""The same of what it wants for batch stages."""


@frozen(kw_only=True)
class Failing:
    """Why a policy has no answer: the last `error`, `since` when there has been none (epoch ms).

    `failures` counts the questions since then, `retry_at` is when it is asked again (epoch ms).
    """

    error: str
    since: int
    failures: int
    retry_at: int


@frozen(kw_only=True)
class CustomMetrics:
    """What is shown of a custom policy: how often it has answered or not, and why it does not now, if so."""

    answers: int
    failures: int
    failing: Failing | None


@define(kw_only=True)
class Custom:
    """One custom policy: what it wanted last, and of which queries it has been asked at least once.

    `asked` is the id of the question that is not answered, None: there is none, and `about` the queries that
    it was shown. `stale` says that something has happened since it was asked. `answers` and `failures` count
    all of them.
    """

    wish: Wish = field(factory=Wish)
    known: frozenset[str] = frozenset()
    asked: str | None = None
    about: frozenset[str] = frozenset()
    stale: bool = True
    failing: Failing | None = None
    answers: int = 0
    failures: int = 0

    @property
    def metrics(self) -> CustomMetrics:
        """What is shown of it."""
        return CustomMetrics(answers=self.answers, failures=self.failures, failing=self.failing)

    def may_ask(self, now: int) -> bool:
        """Say whether it is to be asked now (epoch ms)."""
        ready = self.failing is None or now >= self.failing.retry_at
        return self.stale and self.asked is None and ready

    @property
    def retry_at(self) -> int | None:
        """When it is to be asked again that has failed (epoch ms), None: it has not, or is being asked."""
        return None if self.failing is None or self.asked is not None else self.failing.retry_at

    def lost(self) -> None:
        """Note that nobody answers any more what was asked."""
        self.asked, self.stale = None, True

    def ask(self, id: str, view: ClusterView) -> None:
        """Note that it is asked."""
        self.asked, self.about, self.stale = id, frozenset(view.queries), False

    def answered(self, event: PolicyAnswered, now: int) -> Failing | None:
        """Take in an answer; return why it had none until then, None: it had."""
        before, self.asked = self.failing, None
        self.known = self.about
        if event.wish is not None:
            self.wish, self.failing = event.wish, None
            self.answers += 1
            return before
        self.failures += 1
        failures = 1 if before is None else before.failures + 1
        wait = min(LONGEST_RETRY_MS, FIRST_RETRY_MS << min(failures - 1, 20))
        self.failing = Failing(
            error=event.error or "", since=now if before is None else before.since, failures=failures,
            retry_at=now + wait,
        )  # fmt: skip
        self.stale = True
        return before

    def decide(self, name: str, view: ClusterView) -> Wish:
        """Return what it wanted last; a query that it has not been asked about keeps what it has.

        A time to be asked again that has passed is left out. While it fails it wants nothing for a query
        that it has not been asked about.
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
        """Check that it is in order. Raises AssertionError."""
        assert self.failing is None or 1 <= self.failing.failures <= self.failures


def _later(until: int | None, at: int) -> int | None:
    return None if until is None or until <= at else until


def _waits(name: str, query: QueryMetrics) -> QueryWish:
    slots = query.granted or max(query.lower, min(query.upper, query.slots), 1)
    return QueryWish(slots=slots, reason="policy_awaited", numbers={"policy": short(name)})
