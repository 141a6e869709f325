"""Tests of restart strategies: when they allow a restart, their backoff, and that jitter can be replayed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.failures.strategy import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartPolicy,
    RestartStrategy,
    SeededJitter,
    new_strategy,
)

MINUTE = 60_000
POLICIES: st.SearchStrategy[RestartPolicy] = st.one_of(
    st.just(NoRestart()),
    st.builds(FixedDelay, attempts=st.integers(0, 5), delay_ms=st.integers(0, MINUTE)),
    st.builds(
        FailureRate,
        max_failures_per_interval=st.integers(1, 5),
        interval_ms=st.integers(1, MINUTE),
        delay_ms=st.integers(0, MINUTE),
    ),
    st.builds(
        ExponentialDelay,
        initial_backoff_ms=st.integers(1, 1_000),
        max_backoff_ms=st.integers(1_000, MINUTE),
        backoff_multiplier=st.floats(1.001, 1e6),
        reset_backoff_threshold_ms=st.integers(1, MINUTE),
        jitter_factor=st.floats(0, 1),
        attempts_before_reset_backoff=st.none() | st.integers(1, 5),
    ),
)


def fails(strategy: RestartStrategy, *times: int) -> list[bool]:
    """Return after each failure whether a restart is allowed."""
    result = []
    for at in times:
        strategy.notify_failure(at)
        strategy.validate()
        result.append(strategy.can_restart(at))
    return result


def test_none_never_restarts() -> None:
    strategy = new_strategy(NoRestart(), 0)
    assert strategy.notify_failure(0)
    assert fails(strategy, 1, 2) == [False, False]
    assert strategy.backoff_ms(2) == 0


def test_fixed_delay_has_so_many_attempts_for_a_whole_life() -> None:
    strategy = new_strategy(FixedDelay(attempts=2, delay_ms=300), 0)
    assert fails(strategy, 0, 10**9, 2 * 10**9) == [True, True, False]
    assert strategy.backoff_ms(2 * 10**9) == 300
    assert fails(new_strategy(FixedDelay(attempts=0), 0), 0) == [False]


def test_failures_that_are_just_older_than_the_interval_do_not_count() -> None:
    policy = FailureRate(max_failures_per_interval=2, interval_ms=100)
    assert fails(new_strategy(policy, 0), 0, 50, 100) == [True, True, False]
    assert fails(new_strategy(policy, 0), 0, 50, 101, 151) == [True, True, True, True]
    refusing = new_strategy(policy, 0)
    assert fails(refusing, 0, 0, 0) == [True, True, False]
    assert not refusing.can_restart(100)
    assert refusing.can_restart(101)


def test_failures_until_the_planned_restart_are_one_attempt() -> None:
    strategy = new_strategy(ExponentialDelay(jitter_factor=0, attempts_before_reset_backoff=1), 0)
    assert [strategy.notify_failure(at) for at in (0, 0, 500, 1_000)] == [True, False, False, False]
    assert strategy.can_restart(1_000)
    assert strategy.backoff_ms(400) == 600
    assert strategy.backoff_ms(5_000) == 0
    assert strategy.notify_failure(1_001)
    assert not strategy.can_restart(1_001)


def test_the_series_starts_anew_long_enough_after_the_planned_restart() -> None:
    policy = ExponentialDelay(jitter_factor=0, reset_backoff_threshold_ms=10_000)
    for quiet_ms, backoff_ms in ((9_999, 1_500), (10_000, 1_000)):
        strategy = new_strategy(policy, 0)
        fails(strategy, 0, 1_000 + quiet_ms)
        assert strategy.backoff_ms(1_000 + quiet_ms) == backoff_ms


def test_the_backoff_is_cut_to_whole_ms_each_time() -> None:
    policy = ExponentialDelay(
        initial_backoff_ms=4, max_backoff_ms=99, backoff_multiplier=2.3, jitter_factor=0
    )
    strategy = new_strategy(policy, 0)
    found = []
    for at in (0, 100, 200):
        strategy.notify_failure(at)
        found.append(strategy.backoff_ms(at))
    assert found == [4, 9, 21]


def test_a_backoff_before_any_failure_is_a_mistake() -> None:
    with pytest.raises(RuntimeError, match="no failure"):
        new_strategy(ExponentialDelay(), 0).backoff_ms(0)


def test_thousands_of_failures_in_a_row_still_wait_for_the_longest_time() -> None:
    strategy = new_strategy(ExponentialDelay(), 0)
    at = 0
    for _ in range(3_000):
        assert strategy.notify_failure(at)
        at += strategy.backoff_ms(at) + 1
    strategy.validate()
    assert strategy.backoff_ms(at - 1 - MINUTE) == MINUTE


TIMES = st.lists(st.integers(0, 10 * MINUTE), max_size=30).map(sorted)


@given(policy=POLICIES, seed=st.integers(), times=TIMES)
def test_the_same_failures_and_seed_give_the_same_answers(
    policy: RestartPolicy, seed: int, times: list[int]
) -> None:
    strategies = [new_strategy(policy, seed) for _ in range(2)]
    for at in times:
        first, second = (
            (strategy.notify_failure(at), strategy.can_restart(at), strategy.backoff_ms(at))
            for strategy in strategies
        )
        assert first == second
        assert first[2] >= 0
        for strategy in strategies:
            strategy.validate()


@given(
    initial_ms=st.integers(1, 10_000),
    more_ms=st.integers(0, 10 * MINUTE),
    multiplier=st.floats(1.0001, 1e9),
    factor=st.floats(0, 1),
    seed=st.integers(),
    failures=st.integers(1, 40),
)
def test_backoffs_are_within_their_bounds_and_grow_without_jitter(
    initial_ms: int, more_ms: int, multiplier: float, factor: float, seed: int, failures: int
) -> None:
    most_ms = initial_ms + more_ms

    def backoffs(jitter_factor: float) -> list[int]:
        policy = ExponentialDelay(
            initial_backoff_ms=initial_ms,
            max_backoff_ms=most_ms,
            backoff_multiplier=multiplier,
            jitter_factor=jitter_factor,
        )
        strategy = new_strategy(policy, seed)
        at = 0
        found = []
        for _ in range(failures):
            assert strategy.notify_failure(at)
            found.append(strategy.backoff_ms(at))
            at += found[-1] + 1
        return found

    plain = backoffs(0)
    assert plain == sorted(plain)
    assert plain[0] == initial_ms
    for without, jittered in zip(plain, backoffs(factor), strict=True):
        assert initial_ms <= jittered <= most_ms
        # Below the longest backoff, jitter adds or removes at most the factor's share.
        if without < most_ms:
            assert abs(jittered - without) <= without * factor


@given(seed=st.integers(), bounds=st.lists(st.integers(0, 10**12), max_size=20))
def test_a_jitter_is_within_its_bound(seed: int, bounds: list[int]) -> None:
    jitter = SeededJitter(seed=seed)
    assert all(abs(jitter(bound)) <= bound for bound in bounds)


@pytest.mark.parametrize("seed", [0, 1, -1, 1 << 200])
def test_a_jitter_draws_all_values_about_equally_often(seed: int) -> None:
    jitter = SeededJitter(seed=seed)
    drawn = [jitter(2) for _ in range(5_000)]
    assert all(800 < drawn.count(value) < 1_200 for value in range(-2, 3))


def test_neighbouring_seeds_draw_differently() -> None:
    assert len({SeededJitter(seed=seed)(10**9) for seed in range(1_000)}) > 990


def test_a_jitter_refuses_a_negative_bound() -> None:
    with pytest.raises(ValueError, match="not -1"):
        SeededJitter(seed=0)(-1)


@pytest.mark.parametrize(
    "policy",
    [
        FixedDelay(attempts=-1),
        FailureRate(max_failures_per_interval=0),
        FailureRate(interval_ms=0),
        ExponentialDelay(initial_backoff_ms=0),
        ExponentialDelay(initial_backoff_ms=5, max_backoff_ms=4),
        ExponentialDelay(backoff_multiplier=1),
        ExponentialDelay(jitter_factor=1.1),
        ExponentialDelay(attempts_before_reset_backoff=0),
    ],
)
def test_a_policy_out_of_range_is_noticed(policy: RestartPolicy) -> None:
    with pytest.raises(AssertionError):
        new_strategy(policy, 0).validate()
