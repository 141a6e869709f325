"""Random lives of queries whose settings the policy file changes by name and pattern while they run."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from spark_elastic.core import events as ev
from tests.model.test_lives import Lives

pytestmark = pytest.mark.long

TEXTS = st.fixed_dictionaries(
    {},
    optional={
        "schedulerMode": st.sampled_from(["reactive", "adaptive", "off"]),
        "stateStore": st.sampled_from(["rescalable", "unchanged"]),
        "explicitParallelism": st.sampled_from(["fixed", "upperBound", "ignore"]),
        "maxParallelism": st.sampled_from(["1", "2", "5"]),
        "restartStrategy.type": st.sampled_from(["none", "fixed-delay", "exponential-delay"]),
        "restartStrategy.fixedDelay.attempts": st.sampled_from(["0", "3"]),
        "adaptiveScheduler.submission.resourceWaitTimeout": st.sampled_from(["-1", "0", "2s", "20s"]),
        "adaptiveScheduler.submission.resourceStabilizationTimeout": st.sampled_from(["0", "3s"]),
        "adaptiveScheduler.executing.cooldownAfterRescaling": st.sampled_from(["0", "10s"]),
        "adaptiveScheduler.executing.resourceStabilizationTimeout": st.sampled_from(["0", "4s"]),
        "adaptiveScheduler.rescaleTrigger.maxDelay": st.sampled_from(["none", "0", "3s"]),
        "adaptiveScheduler.scalingInterval.max": st.sampled_from(["none", "5s", "15s"]),
        "adaptiveScheduler.rescalePolicy": st.sampled_from(["gain", "always"]),
    },
)
NAMED = st.dictionaries(st.sampled_from(["q0", "q1", "q?", "*", "other"]), TEXTS, max_size=3)


class OwnSettingsLives(Lives):
    """Lives in which settings that take effect at a start keep their first values."""

    @rule(defaults=TEXTS, named=NAMED)
    def policy_file_changes(self, defaults: dict[str, str], named: dict[str, dict[str, str]]) -> None:
        before = {query: self.given_to(query) for query in self.scene.scheduler._machines}
        self.changes.add(f"s{len(self.scene.log) + 1}")
        # A waiting query may start below the lower bounds, and a running query may get other bounds.
        self.excused = True
        self.send(ev.PolicyFileChanged, path="/p", default_settings=defaults, settings=named)
        if self.first_file:
            return
        for query, given in before.items():
            now = self.given_to(query)
            assert (now.mode, now.state_store) == (given.mode, given.state_store)

    @property
    def first_file(self) -> bool:
        """Return whether the file was read right after the snapshot."""
        return len(self.scene.log) <= 2


OwnSettingsLives.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
TestOwnSettingsLives = OwnSettingsLives.TestCase
