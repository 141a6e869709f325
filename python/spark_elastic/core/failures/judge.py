"""What is to become of a query whose run has failed: start it again, and when, or let it end.

The order is that of the model: what another start cannot repair is not tried; a batch that fails in the same
way again and again is not, either; then the restart strategy is asked.
"""

from __future__ import annotations

from attrs import frozen

from spark_elastic.core.events import Failure
from spark_elastic.core.failures.classify import classify
from spark_elastic.core.failures.poison import PoisonWatch
from spark_elastic.core.failures.strategy import RestartStrategy


@frozen(kw_only=True)
class Judgement:
    """`backoff_ms` is how long to wait before the next start, None if there is to be none."""

    reason: str
    backoff_ms: int | None = None


def judge(failure: Failure, *, at: int, strategy: RestartStrategy, poison: PoisonWatch) -> Judgement:
    """Judge a failure that was heard of at `at` (epoch ms), and let strategy and watch take note of it."""
    verdict = classify(failure)
    if not verdict.retry:
        return Judgement(reason=verdict.reason)
    if poison.note(failure, at):
        return Judgement(reason="failure_poison")
    strategy.notify_failure(at)
    if not strategy.can_restart(at):
        return Judgement(reason="failure_no_restart")
    return Judgement(reason=verdict.reason, backoff_ms=strategy.backoff_ms(at))
