"""Restart strategies: their answers after each failure, for every possible jitter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define

from spark_elastic.core.failures.strategy import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    Jitter,
    RestartPolicy,
    RestartStrategy,
    new_strategy,
)
from tests.vectors.adapters.fields import Fields

# Maps the input fields of the vectors to our settings.
EXPONENTIAL = {
    "initial_ms": "initial_backoff_ms",
    "max_ms": "max_backoff_ms",
    "multiplier": "backoff_multiplier",
    "reset_threshold_ms": "reset_backoff_threshold_ms",
    "jitter": "jitter_factor",
    "attempts_before_reset": "attempts_before_reset_backoff",
}
FIXED = {"attempts": "attempts", "delay_ms": "delay_ms"}
RATE = {"max_per_interval": "max_failures_per_interval", "interval_ms": "interval_ms", "delay_ms": "delay_ms"}


@define(eq=False)
class Claim:
    """An expected value that is checked, not compared: it equals any value for which `holds` is true."""

    holds: Callable[[Any], bool]

    def __eq__(self, expected: object) -> bool:
        return self.holds(expected)


def exponential_backoff(given: Fields) -> Fields:
    policy = ExponentialDelay(**named(EXPONENTIAL, given))
    if "failure_number" in given:
        return {"possible_ms": possible(policy, given["failure_number"], given.get("gap_ms"))}
    if "failures" in given:
        # Without jitter, with the lowest and with the highest jitter.
        series = [backoffs(policy, jitter, given["failures"]) for jitter in (middle, lowest, highest)]
        return {"nominal_min_max_ms": [list(row) for row in zip(*series, strict=True)]}
    if "notifies_at_same_time" in given:
        found = at_the_same_time(policy, given["notifies_at_same_time"])
        return {
            "all_backoffs_at_most": Claim(lambda most: max(found) <= most),
            "holds": max(found) <= given["max_ms"],
        }
    return {"steps": Claim(lambda steps: follow(policy, steps))}


def other_restart_strategies(given: Fields) -> Fields:
    result: dict[str, Any] = {}
    if "failures" in given:
        fixed = new_strategy(FixedDelay(**named(FIXED, given)), 0)
        result["can_restart_after_each"] = answers(fixed, [0] * given["failures"])
    if "failure_times_ms" in given:
        rate = new_strategy(FailureRate(**named(RATE, given)), 0)
        result["can_restart_after_each"] = answers(rate, given["failure_times_ms"])
        result["final"] = rate.can_restart(given.get("final_check_ms", 0))
    if "delay_ms" in given:
        # Such a vector names no strategy: it applies to both.
        policies: list[RestartPolicy] = [FixedDelay(**named(FIXED, given)), FailureRate(**named(RATE, given))]
        (result["backoff_ms"],) = {new_strategy(policy, 0).backoff_ms(0) for policy in policies}
    return result


def named(names: Fields, given: Fields) -> dict[str, Any]:
    return {ours: given[theirs] for theirs, ours in names.items() if theirs in given}


def lowest(bound: int) -> int:
    return -bound


def middle(bound: int) -> int:
    return 0


def highest(bound: int) -> int:
    return bound


def answers(strategy: RestartStrategy, times: Sequence[int]) -> list[bool]:
    """Ask after each failure."""
    result = []
    for at in times:
        strategy.notify_failure(at)
        strategy.validate()
        result.append(strategy.can_restart(at))
    return result


def backoffs(policy: RestartPolicy, jitter: Jitter, failures: int, gap_ms: int | None = None) -> list[int]:
    """Let a query fail `gap_ms` after each failure, or, if None, right after each restart."""
    strategy = new_strategy(policy, jitter)
    at = 0
    result = []
    for _ in range(failures):
        assert strategy.notify_failure(at)
        strategy.validate()
        result.append(strategy.backoff_ms(at))
        at += result[-1] + 1 if gap_ms is None else gap_ms
    return result


def possible(policy: ExponentialDelay, failure: int, gap_ms: int | None) -> list[int]:
    """Return all possible backoffs of one failure: every jitter that makes a difference."""

    def backoff(wanted: int) -> int:
        return backoffs(policy, lambda bound: max(-bound, min(wanted, bound)), failure, gap_ms)[-1]

    most = policy.max_backoff_ms
    return sorted({backoff(wanted) for wanted in range(-most, most + 1)})


def at_the_same_time(policy: RestartPolicy, failures: int) -> list[int]:
    result = []
    for jitter in (lowest, middle, highest):
        strategy = new_strategy(policy, jitter)
        for _ in range(failures):
            strategy.notify_failure(0)
            strategy.validate()
            result.append(strategy.backoff_ms(0))
    return result


def follow(policy: RestartPolicy, steps: Sequence[Fields]) -> bool:
    """Take the steps and check their results, which hold whatever the jitter."""
    for jitter in (0, lowest, highest):
        strategy = new_strategy(policy, jitter)
        at = 0
        for number, step in enumerate(steps):
            match step["op"]:
                case "advance":
                    at += step["ms"]
                case "notify":
                    assert strategy.notify_failure(at) == step["new_attempt"], (number, step)
                case "can_restart":
                    assert strategy.can_restart(at) == step["value"], (number, step)
                case "backoff":
                    assert strategy.backoff_ms(at) == step["ms"], (number, step)
                case other:
                    raise AssertionError(f"unknown step {other}")
            strategy.validate()
    return True
