"""What is to become of a query whose run has failed: start it again, and when, or let it end.

The order is that of the model: what another start cannot repair is not tried; a batch that fails in the same
way again and again is not, either; then the restart strategy is asked.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from spark_elastic.core.events import Failure
from spark_elastic.core.failures.classify import classify
from spark_elastic.core.failures.our_store import is_of_our_store
from spark_elastic.core.failures.poison import PoisonWatch
from spark_elastic.core.failures.strategy import RestartStrategy

StoreOf = Literal["user", "new", "ours"]
"""Whose choice a state store was: the user's, or ours; ours is new until a micro-batch is committed."""


@frozen(kw_only=True)
class Judgement:
    """`backoff_ms` is how long to wait before the next start, None if there is to be none."""

    reason: str
    backoff_ms: int | None = None


def judge(
    failure: Failure, *, at: int, strategy: RestartStrategy, poison: PoisonWatch, store: StoreOf
) -> Judgement:
    """Judge a failure that was heard of at `at` (epoch ms), and let strategy and watch take note of it."""
    if store != "user" and is_of_our_store(failure):
        # In the same run executors have the store open: another one takes another run.
        return Judgement(reason="failure_new_store" if store == "new" else "failure_our_store")
    verdict = classify(failure)
    if not verdict.retry:
        return Judgement(reason=verdict.reason)
    if poison.note(failure, at):
        return Judgement(reason="failure_poison")
    strategy.notify_failure(at)
    if not strategy.can_restart(at):
        return Judgement(reason="failure_no_restart")
    return Judgement(reason=verdict.reason, backoff_ms=strategy.backoff_ms(at))
