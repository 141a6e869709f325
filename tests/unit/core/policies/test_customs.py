"""Tests of custom policies as the scheduler sees them: asked by an action, answered by an event."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.actions import RequestExecutors
from spark_elastic.core.events import BatchStage, BatchStages, QueryInfo
from spark_elastic.core.keys.policies import may_be_custom, short
from spark_elastic.core.policies.policy import BatchWish, PolicyAnswered, Wish
from spark_elastic.core.policies.view import SlotLimits
from spark_elastic.core.scheduler import Scheduler
from tests.unit.core.builder import STATEFUL, STATELESS, decisions, reasons
from tests.unit.core.policies.asked import CUSTOM, NIGHT, Asked, wants
from tests.unit.core.policies.world import SETTINGS

OTHER = "other"


@pytest.fixture
def scene() -> Asked:
    found = Asked(CUSTOM)
    found.begin()
    return found


def test_names_of_policies() -> None:
    for good in (NIGHT, "a:B", "late-night", "x1"):
        assert may_be_custom(good)
    for bad in ("", "a b", "a:b:c", "a.b", ":B", "a:", "1a", "a:1b", "a,b", "-a", "autoscale", "autoscal"):
        assert not may_be_custom(bad)
    assert (short(NIGHT), short("late-night")) == ("LateNight", "late-night")


def test_it_is_asked_about_what_there_is_and_its_answer_counts(scene: Asked) -> None:
    question = scene.questions()[-1]
    assert question.view is not None
    assert list(question.view.queries) == ["enrich"]
    actions = scene.answer(3)
    (said,) = (decision for decision in decisions(actions) if decision.reason == "policy_says")
    assert said.message == "Use 3 slots, decided by LateNight: enough by night"
    assert scene.granted == 3
    scene.check()


def test_what_it_wants_for_batch_stages_is_requested_and_said(scene: Asked) -> None:
    scene.settle(3)
    scene.send(BatchStages, stages=(BatchStage(stage=1, tasks=200),))
    scene.advance(1_000)
    view = scene.questions()[-1].view
    assert view is not None
    assert view.batch is not None
    assert view.batch.left == 200
    said = {"policy": "LateNight", "says": "two by night"}
    batch = BatchWish(executors=2, reason="policy_says_batch", numbers=said)
    actions = scene.answer(wish=evolve(wants(view, 3), batch=batch))
    messages = [one.message for one in decisions(actions) if one.reason == "policy_says_batch"]
    assert messages == ["Use 2 executors for batch stages, decided by LateNight: two by night"]
    (request,) = (action for action in actions if isinstance(action, RequestExecutors))
    queries = -(-3 // max(1, view.usual_slots))
    assert request.total == queries + 2
    scene.check()


def test_until_it_answers_a_query_keeps_what_it_has(scene: Asked) -> None:
    """By its bounds alone, it would request all executors that the cluster has."""
    scene.advance(60_000)
    assert scene.granted == 8
    assert len(scene.questions()) == 2, "once about an application without a query"
    requests = [action.total for action in scene.actions if isinstance(action, RequestExecutors)]
    assert max(requests, default=0) <= 2
    scene.check()


def test_it_is_asked_again_when_something_has_happened_once_a_second_at_most(scene: Asked) -> None:
    scene.settle(3)
    before = len(scene.questions())
    scene.advance(60_000)
    assert len(scene.questions()) == before, "nothing has happened"
    for _ in range(20):
        scene.now += 100
        scene.batch(50, 3, "enrich")
        if scene.waits():
            scene.answer(3)
    assert 1 <= len(scene.questions()) - before <= 3
    scene.check()


def test_one_that_is_slow_is_not_asked_meanwhile(scene: Asked) -> None:
    before = len(scene.questions())
    scene.seconds(20)
    assert len(scene.questions()) == before
    scene.answer(3)
    assert len(scene.questions()) == before + 1, "what has happened meanwhile"
    scene.check()


def test_it_is_asked_again_at_the_time_that_it_has_named(scene: Asked) -> None:
    scene.settle(3)
    scene.seconds(1)
    until = scene.now + 300_000
    view = scene.questions()[-1].view
    assert view is not None
    scene.settle(wish=wants(view, 3, until))
    before = len(scene.questions())
    scene.advance(until - 1 - scene.now)
    assert len(scene.questions()) == before
    scene.advance(2)
    assert len(scene.questions()) == before + 1
    done = len(scene.actions)
    scene.advance(60_000)  # the policy does not answer, and its expired wish causes no busy loop
    assert len(scene.actions) - done < 5
    scene.check()


def test_an_answer_to_an_older_question_concerns_nobody(scene: Asked) -> None:
    first = scene.questions()[-1]
    scene.settle(3)
    assert first.view is not None
    actions = scene.send(PolicyAnswered, policy=NIGHT, asked=first.id, wish=wants(first.view, 7))
    assert scene.granted == 3
    assert decisions(actions) == []
    scene.send(PolicyAnswered, policy="nobody", asked="a1", error="x")
    assert scene.granted == 3
    scene.check()


def test_one_that_fails_holds_what_it_wanted_and_says_so_once(scene: Asked) -> None:
    scene.settle(3)
    answers = scene.metrics.answers
    scene.seconds(1)
    actions = scene.answer(error="LookupError: no such model")
    (failed,) = decisions(actions)
    assert failed.message == (
        f"Policy {NIGHT} gave no usable answer: LookupError: no such model. Its last decision stays in "
        "force; next question in 10 s, later ones after longer pauses."
    )
    before = len(scene.questions())
    scene.seconds(9)
    assert len(scene.questions()) == before
    scene.seconds(3)
    assert len(scene.questions()) == before + 1
    assert decisions(scene.answer(error="LookupError: no such model")) == []
    assert scene.granted == 3
    metrics = scene.metrics
    assert (metrics.answers, metrics.failures) == (answers, 2)
    assert metrics.failing is not None
    assert (metrics.failing.failures, metrics.failing.error) == (2, "LookupError: no such model")
    scene.check()


def test_it_is_asked_later_and_later(scene: Asked) -> None:
    scene.settle(3)
    scene.seconds(1)
    times = []
    for _ in range(10):
        while not scene.waits():
            scene.seconds(1)
        times.append(scene.now)
        scene.answer(error="no")
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert [round(wait / 1_000) for wait in waits[:5]] == [10, 20, 40, 80, 160]
    assert waits[-1] <= 601_000
    assert reasons(scene.actions).count("policy_failed") == 1


def test_one_that_fails_is_asked_again_though_nothing_happens(scene: Asked) -> None:
    scene.answer(error="no")
    before = len(scene.questions())
    scene.advance(11_000)
    assert len(scene.questions()) == before + 1


def test_one_that_recovers_says_so_once(scene: Asked) -> None:
    scene.answer(error="no")
    scene.advance(10_000)
    actions = scene.settle(5)
    (recovered,) = (one for one in decisions(actions) if one.reason == "policy_recovered")
    assert recovered.message == (f"Policy {NIGHT} answers again, after 1 question without an answer in 10 s.")
    assert scene.granted == 5
    assert scene.metrics.failing is None
    scene.check()


def test_one_that_never_had_an_answer_leaves_a_query_to_its_bounds(scene: Asked) -> None:
    scene.answer(error="no")
    assert scene.granted is None
    scene.running(8, STATEFUL)
    assert scene.query("counts").granted_slots is None
    scene.check()


def test_a_query_that_is_new_keeps_what_it_has_until_it_was_asked_about(scene: Asked) -> None:
    scene.settle(3)
    scene.running(8, STATEFUL)
    said = [one for one in decisions(scene.actions) if one.query == "counts"]
    assert "policy_awaited" in [one.reason for one in said]
    scene.settle(2)
    assert scene.query("counts").granted_slots == 2
    scene.check()


def test_wanting_nothing_leaves_a_query_to_its_bounds(scene: Asked) -> None:
    scene.settle(3)
    scene.seconds(1)
    scene.settle(wish=Wish())
    assert scene.granted is None
    scene.check()


def test_it_is_a_member_of_a_chain() -> None:
    scene = Asked(evolve(SETTINGS, policy=("autoscale", NIGHT)))
    scene.begin()
    scene.settle(wish=Wish())
    said = decisions(scene.seconds(70))[-1]
    assert said.reason.startswith("autoscale_")
    scene.settle(2)
    assert scene.granted == 2
    scene.check()


def test_one_is_shown_the_limits_of_those_before_it() -> None:
    scene = Asked(evolve(SETTINGS, policy=(OTHER, NIGHT)))
    scene.begin()
    limits = {"enrich": (SlotLimits(upper=2, by="other"),)}
    scene.settle(policy=OTHER, wish=Wish(limits=limits))
    scene.seconds(2)
    scene.settle(5)
    scene.seconds(2)
    view = scene.questions()[-1].view
    assert view is not None
    assert view.queries["enrich"].upper == 2
    assert scene.granted == 2
    scene.check()


def test_queries_with_policies_of_their_own_are_asked_about_by_theirs() -> None:
    scene = Asked(evolve(CUSTOM, texts={"schedulerMode": "adaptive"}, queries={"counts": {"policy": OTHER}}))
    scene.begin()
    scene.running(8, STATEFUL)
    scene.settle(3)
    scene.settle(5, policy=OTHER)
    assert (scene.granted, scene.query("counts").granted_slots) == (3, 5)
    assert set(scene.scheduler.custom_policies) == {NIGHT, OTHER}
    scene.terminated("counts")
    scene.seconds(2)
    assert set(scene.scheduler.custom_policies) == {NIGHT}, "nothing names the other any more"
    scene.check()


def test_with_advice_only_it_is_asked_and_nothing_is_done() -> None:
    scene = Asked(evolve(CUSTOM, advise_only=True))
    scene.begin()
    actions = scene.settle(3)
    (said,) = (decision for decision in decisions(actions) if decision.reason == "policy_says")
    assert "nothing is changed" in said.message
    assert scene.granted is None


def test_a_state_that_was_saved_goes_on_without_the_code_of_anybody(scene: Asked) -> None:
    scene.settle(3)
    scene.seconds(1)
    scene.answer(error="no")
    saved = json.loads(json.dumps(scene.scheduler.save()))
    restored = Scheduler.restore(saved)
    assert restored.custom_policies == scene.scheduler.custom_policies
    assert restored.save() == saved


def test_what_was_asked_before_a_snapshot_is_asked_again(scene: Asked) -> None:
    before = scene.questions()[-1]
    assert scene.waits()
    scene.now += 2_000
    scene.start(4, 4, queries=(QueryInfo(facts=STATELESS, run="r1", run_state="running", partitions=8),))
    assert scene.questions()[-1].id != before.id
    scene.answer(3)
    assert scene.granted == 3
    scene.check()


STEPS = ("batch", "answer", "fail", "late", "come", "go", "second", "minute", "snapshot", "saved")


@given(
    st.lists(st.sampled_from(STEPS), max_size=40), st.sampled_from([(NIGHT,), ("autoscale", OTHER, NIGHT)])
)
@settings(max_examples=60)
def test_in_any_order_its_rules_hold_and_the_same_events_decide_the_same(
    steps: list[str], chain: tuple[str, ...]
) -> None:
    scene = Asked(evolve(SETTINGS, policy=chain))
    scene.start(4, 4)
    scene.running(8, STATELESS)
    executors = 2
    for step in steps:
        match step:
            case "batch":
                scene.batches(300, partitions=8, query="enrich")
            case "answer" | "fail":
                fields: dict[str, Any] = (
                    {"slots": 1 + len(scene.log) % 9} if step == "answer" else {"error": "no"}
                )
                for policy in (NIGHT, OTHER):
                    if scene.waits(policy):
                        scene.answer(policy=policy, **fields)
            case "late":
                scene.send(PolicyAnswered, policy=NIGHT, asked="a1", error="late")
            case "come":
                executors += 1
                scene.executor(f"new-{executors}")
            case "go":
                scene.lose(f"new-{executors}")
            case "second" | "minute":
                scene.advance(1_000 if step == "second" else 60_000)
            case "snapshot":
                running = QueryInfo(facts=STATELESS, run="r1", run_state="running", partitions=8)
                scene.timers.clear()
                scene.start(4, 4, queries=(running,))
            case "saved":
                saved = json.loads(json.dumps(scene.scheduler.save()))
                assert Scheduler.restore(saved).save() == saved
    scene.check()
