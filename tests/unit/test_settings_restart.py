"""Tests of the settings of restarts after failures: spellings, ranges, and that each has an effect."""

from __future__ import annotations

import pytest

from spark_elastic.core.failures.strategy import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartPolicy,
)
from spark_elastic.core.keys import rescaling
from spark_elastic.settings import SettingsError, load

TYPE = "spark.elastic.restartStrategy.type"
EXPONENTIAL = "spark.elastic.restartStrategy.exponentialDelay."


def error_of(conf: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        load(conf)
    (error,) = caught.value.errors
    return error


@pytest.mark.parametrize(
    ("spellings", "policy"),
    [
        (("none", "off", "disable", "None"), NoRestart()),
        (("fixed-delay", "fixeddelay", "fixedDelay", "FIXED-DELAY"), FixedDelay()),
        (("failure-rate", "failurerate", "failureRate"), FailureRate()),
        (("exponential-delay", "exponentialdelay", "ExponentialDelay"), ExponentialDelay()),
    ],
)
def test_types_are_accepted_in_all_spellings(spellings: tuple[str, ...], policy: RestartPolicy) -> None:
    for text in spellings:
        for name in (TYPE, "spark.elastic.restart-strategy.type", "spark.elastic.restart-strategy"):
            assert load({name: text}).core().restart == policy


def test_an_unknown_type_is_refused_with_the_nearest() -> None:
    error = error_of({TYPE: "fixed-delays"})
    assert "one of none, fixed-delay, failure-rate, exponential-delay" in error
    assert error.endswith(f"set {TYPE}=fixed-delay")


def test_every_value_that_is_set_counts() -> None:
    prefix = "spark.elastic.restart-strategy."
    conf = {
        prefix + "fixed-delay.attempts": "7",
        prefix + "fixed-delay.delay": "2 s",
        prefix + "failure-rate.max-failures-per-interval": "5",
        prefix + "failure-rate.failure-rate-interval": "5 min",
        prefix + "failure-rate.delay": "3s",
        prefix + "exponential-delay.initial-backoff": "4s",
        prefix + "exponential-delay.max-backoff": "8s",
        prefix + "exponential-delay.backoff-multiplier": "2",
        prefix + "exponential-delay.reset-backoff-threshold": "30 min",
        prefix + "exponential-delay.jitter-factor": "0",
        prefix + "exponential-delay.attempts-before-reset-backoff": "10",
    }
    expected: dict[str, RestartPolicy] = {
        "fixed-delay": FixedDelay(attempts=7, delay_ms=2_000),
        "failure-rate": FailureRate(max_failures_per_interval=5, interval_ms=300_000, delay_ms=3_000),
        "exponential-delay": ExponentialDelay(
            initial_backoff_ms=4_000,
            max_backoff_ms=8_000,
            backoff_multiplier=2.0,
            reset_backoff_threshold_ms=1_800_000,
            jitter_factor=0.0,
            attempts_before_reset_backoff=10,
        ),
    }
    for text, policy in expected.items():
        settings = load({**conf, TYPE: text})
        assert settings.core().restart == policy
        assert load(settings.as_conf()) == settings


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("initialBackoff", "0", ("at least 1ms", "=1s")),
        ("backoffMultiplier", "1", ("a number above 1", "=1.5")),
        ("backoffMultiplier", "inf", ("a number above 1", "=1.5")),
        ("jitterFactor", "1.1", ("a number from 0 to 1", "=0.1")),
        ("jitterFactor", "nan", ("a number from 0 to 1", "=0.1")),
        ("attemptsBeforeResetBackoff", "0", ("from 1 up, or none", "=1")),
    ],
)
def test_a_value_out_of_range_is_refused(key: str, text: str, words: tuple[str, ...]) -> None:
    error = error_of({EXPONENTIAL + key: text})
    for word in (f"'{text}'", *words):
        assert word in error


def test_the_longest_backoff_may_not_be_shorter_than_the_initial_one() -> None:
    error = error_of({EXPONENTIAL + "initialBackoff": "2min"})
    assert "at least the initial backoff, '2min'" in error
    assert error.endswith(f"set {EXPONENTIAL}maxBackoff=2min")
    assert load({EXPONENTIAL + "initialBackoff": "1min"})[rescaling.INITIAL_BACKOFF_MS] == 60_000
    # One of the two is invalid, so they cannot be compared.
    assert "'x'" in error_of({EXPONENTIAL + "initialBackoff": "x", EXPONENTIAL + "maxBackoff": "1ms"})
