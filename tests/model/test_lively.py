"""Random lives in which hardly anything delays a rescale, so that one is under way most of the time."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.settings import CoreSettings
from tests.model.test_lives import FAILURES, QUERIES, Lives
from tests.model.test_resumed_lives import ResumedLives
from tests.unit.core.builder import OLD, PREPARED, STATELESS

pytestmark = pytest.mark.long

SETTINGS = st.builds(
    CoreSettings,
    mode=st.sampled_from(["reactive", "adaptive"]),
    cooldown_ms=st.sampled_from([0, 0, 3_000]),
    executing_stabilization_ms=st.sampled_from([0, 0, 2_000]),
    max_delay_ms=st.sampled_from([0, 5_000]),
    min_parallelism_increase=st.sampled_from([1, 2]),
    max_concurrent_rescales=st.sampled_from([1, 1, 2, 4]),
    scaling_interval_max_ms=st.sampled_from([None, 5_000]),
    rescale_policy=st.just("always"),
    restart=st.builds(FixedDelay, attempts=st.just(9), delay_ms=st.sampled_from([0, 1_000])),
)


class LivelyLives(Lives):
    """Queries that run from the start, on slots that come and go."""

    @initialize(given=SETTINGS, cores=st.integers(1, 3))
    def begin(self, given: CoreSettings, cores: int) -> None:
        super().begin(given, cores)
        for query, facts in (("q0", PREPARED), ("q1", OLD), ("q2", STATELESS)):
            self.submitted(query, facts)
        self.carry_out_all()

    @rule(query=QUERIES, more=st.booleans(), cores=st.integers(1, 4))
    def slots_change_after_a_batch(self, query: str, more: bool, cores: int) -> None:
        self.batch_is_committed(query, 300, 400)
        if more:
            self.executor_comes("1", cores)
        else:
            self.executor_goes("1")

    @precondition(lambda self: any(self.rescales(query) for query in self.phase))
    @rule(query=QUERIES, failure=FAILURES, refused=st.booleans())
    def run_fails_before_the_boundary(self, query: str, failure: object, refused: bool) -> None:
        if self.rescales(query):
            self.run_fails(query, failure, refused)


class LivelyResumedLives(LivelyLives, ResumedLives):
    """The same with policy processes that die."""


for lives in (LivelyLives, LivelyResumedLives):
    lives.TestCase.settings = settings(Lives.TestCase.settings, max_examples=40)
TestLivelyLives = LivelyLives.TestCase
TestLivelyResumedLives = LivelyResumedLives.TestCase
