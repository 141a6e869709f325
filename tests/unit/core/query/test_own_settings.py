"""Tests of queries with settings of their own, by name or pattern, from the settings and the policy file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.actions import (
    BoundSources,
    Configure,
    FailQuery,
    HoldQuery,
    RequestExecutors,
    Rescale,
    StartQuery,
)
from spark_elastic.core.failures.strategy import ExponentialDelay, FixedDelay, NoRestart
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.settings import load
from tests.unit.core.builder import OLD, STATEFUL, STATELESS, Scene, decisions, only, orders, reasons
from tests.unit.core.shim import settle

Q = "spark.elastic.query."
MODE = "schedulerMode"
STRATEGY = "restartStrategy.type"
COOLDOWN = "adaptiveScheduler.executing.cooldownAfterRescaling"

Play = Callable[[Mapping[str, str]], Scene]


@pytest.fixture
def play() -> Iterator[Play]:
    """Make scenes from settings as users type them, and check each scene at its end."""
    scenes: list[Scene] = []

    def make(conf: Mapping[str, str]) -> Scene:
        scenes.append(Scene(load(conf).core()))
        return scenes[-1]

    yield make
    for scene in scenes:
        scene.check()
        saved = scene.scheduler.save()
        assert Scheduler.restore(saved).save() == saved


def file(scene: Scene, defaults: Mapping[str, str] | None = None, **settings: Mapping[str, str]) -> Any:
    """Change the policy file to these settings; in names, ``_`` stands for ``*``."""
    named = {name.replace("_", "*"): texts for name, texts in settings.items()}
    return scene.send(ev.PolicyFileChanged, path="/p", default_settings=defaults or {}, settings=named)


def test_a_query_that_is_off_starts_at_once_as_in_plain_spark_and_says_why(play: Play) -> None:
    scene = play({f"{Q}counts.{MODE}": "off"})
    scene.start()  # no slots, so any other query waits for them
    actions = scene.submit(sources=(ev.SourceFacts(name="kafka", divisible=True),))
    start = only(actions, StartQuery)
    assert (start.partitions, start.rescalable, start.stages) == (None, False, False)
    assert orders(actions) == [start]
    assert reasons(actions) == ["own_settings", "untouched_off"]
    assert "spark.elastic.schedulerMode is off" in decisions(actions)[0].message

    # Another query in the same application waits.
    assert only(scene.submit(evolve(STATEFUL, query="b", name="b")), HoldQuery).query == "b"


@pytest.mark.parametrize("facts", [STATEFUL, STATELESS, OLD])
def test_a_query_that_is_off_follows_no_slots(play: Play, facts: ev.QueryFacts) -> None:
    scene = play({f"{Q}*.{MODE}": "off", "spark.elastic.adaptiveScheduler.rescalePolicy": "always"})
    scene.start(2)
    scene.running(200, facts)
    for number in range(4):
        scene.executor(f"e{number}")
        settle(scene)
        scene.batches(400, 400, partitions=200, query=facts.query)
    assert not [action for action in scene.actions if isinstance(action, Rescale | BoundSources)]
    assert scene.query(facts.query).partitions == 200


def test_a_failure_of_a_query_that_is_off_ends_it_while_the_others_are_started_again(play: Play) -> None:
    scene = play({f"{Q}counts.{MODE}": "off", "spark.elastic.restartStrategy.type": "fixed-delay"})
    assert only(scene.start(2), Configure).restarts
    scene.running(2)
    failed = only(scene.run_fails(), FailQuery)
    assert (failed.query, failed.message) == ("counts", None)
    scene.running(2, evolve(STATEFUL, query="b", name="b"))
    assert (
        "failure_recoverable" in reasons(scene.run_fails(query="b")) or scene.query("b").state == "Restarting"
    )


def test_the_shim_asks_about_failures_as_soon_as_one_query_needs_it(play: Play) -> None:
    assert not only(play({}).start(2), Configure).restarts
    for conf in (
        {f"{Q}counts.{STRATEGY}": "fixed-delay"},
        {f"{Q}co*.{MODE}": "adaptive"},
    ):
        assert only(play(conf).start(2), Configure).restarts
    chosen = {"spark.elastic.restartStrategy.type": "none", f"{Q}counts.{MODE}": "adaptive"}
    assert not only(play(chosen).start(2), Configure).restarts
    scene = play({})
    scene.start(2)
    assert only(file(scene, counts={STRATEGY: "fixed-delay"}), Configure).restarts
    # The shim is configured once: it already waits for answers after failures.
    assert not orders(file(scene, counts={STRATEGY: "failure-rate"}))
    advised = play({"spark.elastic.adviseOnly": "true", f"{Q}counts.{STRATEGY}": "fixed-delay"})
    assert not only(advised.start(2), Configure).restarts


def test_each_query_has_its_own_restart_strategy(play: Play) -> None:
    scene = play(
        {
            f"{Q}co*.{STRATEGY}": "fixed-delay",
            f"{Q}co*.restartStrategy.fixedDelay.attempts": "7",
            f"{Q}counts.restartStrategy.fixedDelay.delay": "3s",
            "spark.elastic.restartStrategy.fixedDelay.attempts": "4",
        }
    )
    scene.start(2)
    scene.running(2)
    scene.running(2, evolve(STATEFUL, query="b", name="b"))
    assert scene.query().settings.restart == FixedDelay(attempts=7, delay_ms=3_000)
    assert scene.query("b").settings.restart == NoRestart()
    scene.run_fails()
    assert (scene.query().state, scene.query().restarted) == ("Restarting", 1)
    scene.run_fails(query="b")
    assert scene.query("b").state == "Failing"
    assert scene.query().own_settings == {
        STRATEGY: "fixed-delay",
        "restartStrategy.fixedDelay.attempts": "7",
        "restartStrategy.fixedDelay.delay": "3s",
    }
    assert scene.query("b").own_settings == {}


def test_a_mode_brings_its_defaults_but_not_over_what_the_application_has_chosen(play: Play) -> None:
    scene = play({f"{Q}counts.{MODE}": "adaptive"})
    scene.start(2)
    scene.submit()
    own = scene.query().settings
    assert (own.resource_wait_ms, type(own.restart)) == (300_000, ExponentialDelay)
    chosen = {
        "spark.elastic.restartStrategy.type": "none",
        "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout": "-1",
    }
    other = play({f"{Q}counts.{MODE}": "adaptive", **chosen})
    other.start(2)
    other.submit()
    assert (other.query().settings.resource_wait_ms, other.query().settings.restart) == (-1, NoRestart())


def test_a_reactive_query_beside_adaptive_ones_has_no_bounds_and_shares_the_default_group(play: Play) -> None:
    scene = play(
        {
            "spark.elastic.schedulerMode": "adaptive",
            "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
            f"{Q}counts.{MODE}": "reactive",
            f"{Q}*.upperBound": "2",
        }
    )
    scene.start(4)
    scene.submit()
    requirements = scene.query().requirements
    assert (requirements.lower, requirements.upper) == (1, 32_768)
    assert requirements.shuffle.group == "default"
    scene.submit(evolve(STATEFUL, query="b", name="b"))
    assert scene.query("b").requirements.upper == 2
    # A query without a bound uses the slots there are: nothing is requested and nothing released.
    assert not [action for action in scene.actions if isinstance(action, RequestExecutors)]


def test_bounds_and_shares_by_pattern_give_way_to_those_by_name(play: Play) -> None:
    scene = play(
        {
            "spark.elastic.schedulerMode": "adaptive",
            f"{Q}*.upperBound": "9",
            f"{Q}cou*.upperBound": "5",
            f"{Q}cou*.priority": "4",
            f"{Q}c*.weight": "3",
            f"{Q}c*.priority": "1",
            f"{Q}counts.slotSharingGroup": "etl",
        }
    )
    scene.start(2)
    scene.submit()
    requirements = scene.query().requirements
    assert (requirements.upper, requirements.priority) == (5, 4)
    assert (requirements.shuffle.weight, requirements.shuffle.group) == (3, "etl")


def test_the_policy_file_counts_more_and_for_a_query_that_runs_from_its_next_decision(play: Play) -> None:
    scene = play({f"{Q}counts.{COOLDOWN}": "1h", f"{Q}counts.maxParallelism": "8"})
    scene.start(2)
    file(scene)
    scene.running(2)
    scene.executor("more", cores=2)
    scene.batches(4_000, 4_000, 4_000, partitions=2)
    settle(scene, 600_000)
    assert not [action for action in scene.actions if isinstance(action, Rescale)]
    actions = file(scene, {"adaptiveScheduler.rescalePolicy": "always"}, c_={COOLDOWN: "1s"})
    assert "own_settings" in reasons(actions)
    assert scene.query().settings.max_parallelism == 8
    assert scene.query().settings.cooldown_ms == 1_000
    settle(scene, 600_000)
    assert scene.query().partitions == 4


def test_a_change_of_the_largest_parallelism_changes_the_bounds_of_a_query_that_runs(play: Play) -> None:
    scene = play({})
    scene.start(4)
    scene.running(4, STATELESS)
    actions = file(scene, enrich={"maxParallelism": "3"})
    assert only(actions, Rescale).partitions == 3
    assert scene.query("enrich").requirements.upper == 3
    settle(scene)
    assert only(file(scene), Rescale).partitions == 4
    assert scene.query("enrich").own_settings == {}


def test_mode_and_state_store_of_a_query_that_runs_stay_until_it_starts_again(play: Play) -> None:
    scene = play({})
    scene.start(2)
    file(scene)
    scene.running(2)
    texts = {MODE: "off", "stateStore": "unchanged", COOLDOWN: "5s"}
    file(scene, counts=texts)
    own = scene.query().settings
    assert (own.mode, own.state_store, own.cooldown_ms) == ("reactive", "rescalable", 5_000)
    scene.terminated()
    start = only(scene.submit(run="r2"), StartQuery)
    assert (start.partitions, scene.query().settings.mode) == (None, "off")
    assert scene.query().own_settings == texts
    # And back: a query that started as off stays off.
    scene.started(200, run="r2")
    file(scene)
    assert scene.query().own_settings == {MODE: "off", "stateStore": "unchanged"}


def test_the_first_reading_of_the_file_counts_for_what_was_found_as_well(play: Play) -> None:
    scene = play({})
    scene.start(2, queries=[ev.QueryInfo(facts=STATEFUL, run="r1", run_state="running", partitions=200)])
    file(scene, counts={MODE: "off"})
    assert scene.query().settings.mode == "off"
    settle(scene)
    assert not [action for action in scene.actions if isinstance(action, Rescale)]


def test_a_file_that_appears_later_leaves_the_mode_of_what_runs(play: Play) -> None:
    scene = play({})
    scene.start(2)
    scene.running(2)
    file(scene, counts={MODE: "off"})
    assert scene.query().settings.mode == "reactive"


def test_a_new_restart_strategy_counts_its_attempts_anew(play: Play) -> None:
    scene = play({"spark.elastic.restartStrategy.type": "fixed-delay"})
    scene.start(2)
    scene.running(2)
    scene.run_fails()
    scene.advance(1_000)
    scene.started(2)
    # The application's single attempt is used up.
    file(scene, counts={"restartStrategy.fixedDelay.attempts": "2"})
    scene.run_fails(offsets="[8]")
    assert scene.query().state == "Restarting"


def test_a_longer_wait_for_slots_holds_for_a_query_that_waits_already(play: Play) -> None:
    wait = "adaptiveScheduler.submission.resourceWaitTimeout"
    scene = play({f"{Q}counts.{wait}": "10s"})
    scene.start()
    scene.submit()
    scene.advance(9_000)
    file(scene, counts={wait: "60s"})
    scene.advance(50_000)
    assert scene.query().state == "WaitingForResources"
    assert only(scene.advance(2_000), FailQuery).query == "counts"


def test_what_contradicts_itself_is_refused_as_a_whole_and_what_counted_before_stays(play: Play) -> None:
    scene = play({f"{Q}counts.{COOLDOWN}": "5s"})
    scene.start(2)
    scene.submit()
    backoff = "restartStrategy.exponentialDelay."
    actions = file(
        scene,
        co_={f"{backoff}initialBackoff": "10s", STRATEGY: "exponential-delay"},
        counts={f"{backoff}maxBackoff": "2s"},
    )
    (refused,) = [one for one in decisions(actions) if one.reason == "own_settings_refused"]
    assert (
        f"{Q}counts.{backoff}maxBackoff is '2s', allowed is at least the initial backoff" in refused.message
    )
    assert scene.query().own_settings == {COOLDOWN: "5s"}


def test_a_query_without_a_name_has_the_defaults_of_the_file_alone(play: Play) -> None:
    scene = play({f"{Q}*.{COOLDOWN}": "5s"})
    scene.start(2)
    file(scene, {"maxParallelism": "3"}, _={"maxParallelism": "9"})
    scene.submit(name=None)
    assert scene.query().own_settings == {"maxParallelism": "3"}
