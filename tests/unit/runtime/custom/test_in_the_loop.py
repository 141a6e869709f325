"""Tests of custom policies from the settings to a grant: the loop asks, the journal records the answers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from spark_elastic.core import events as ev
from spark_elastic.core.actions import TurnOff
from spark_elastic.core.policies.policy import AskPolicy, PolicyAnswered
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.custom.host import Host
from spark_elastic.runtime.entries import ActionsEntry, EventEntry, read_journal
from spark_elastic.runtime.journal import Journal
from spark_elastic.runtime.loop import Loop
from spark_elastic.runtime.replay import replay
from spark_elastic.settings import load
from spark_elastic.wire import encode_event
from tests.unit.http.world import ADAPTIVE, API, World, world
from tests.unit.runtime.driver import Driver
from tests.unit.runtime.memory_gateway import MemoryGateway, SteppedClock
from tests.unit.runtime.support import START, snapshot
from tests.unit.runtime.test_process import ended, first, started

pytestmark = pytest.mark.long

EXAMPLES = "tests.unit.policies.examples"
PATIENCE_S = 60.0

# A module that no test imports, which shows that the policy's own process does.
LONELY = """
from spark_elastic.policies import QueryWish, Wish


class Lonely:
    def decide(self, view):
        wish = QueryWish(slots=3, reason="nobody else is here")
        return Wish(queries=dict.fromkeys(view.queries, wish))
"""


def conf(policy: str, **options: str) -> dict[str, str]:
    name = policy.rpartition(":")[2]
    own = {f"spark.elastic.policy.{name}.{option}": text for option, text in options.items()}
    return {**ADAPTIVE, "spark.elastic.policy": policy, **own}


def eventually(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def custom(running: World) -> dict[str, Any]:
    """Return what the API shows of the policy once it has been asked."""
    (shown,) = running.get(f"{API}/overview").json["customPolicies"]
    assert isinstance(shown, dict)
    return shown


def granted(running: World) -> list[int | None]:
    return [query["grantedSlots"] for query in running.get(f"{API}/queries").json["queries"]]


@pytest.fixture
def lonely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put the policy where its process finds it."""
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "lonely_policy.py").write_text(LONELY)
    monkeypatch.syspath_prepend(folder)
    return "lonely_policy:Lonely"


def test_a_policy_of_the_settings_decides_and_its_code_is_nowhere_here(lonely: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    settings = load(conf(lonely))
    with world(conf(lonely), journal=lambda: Journal(path, settings=settings, max_size=1 << 22)) as running:
        eventually(lambda: granted(running) == [3])
        assert custom(running)["error"] is None
        assert custom(running)["answers"] >= 1
        (said,) = (
            one for one in running.get(f"{API}/decisions").json["decisions"] if one["reason"] == "policy_says"
        )
        assert said["message"] == "Use 3 slots, decided by Lonely: nobody else is here"
    assert "lonely_policy" not in sys.modules
    entries = [entry for _, entry in read_journal(path)]
    answers = [one.event for one in entries if isinstance(one, EventEntry)]
    assert any(isinstance(event, PolicyAnswered) and event.wish is not None for event in answers)
    asked = [action for one in entries if isinstance(one, ActionsEntry) for action in one.actions]
    assert all(one.view is None for one in asked if isinstance(one, AskPolicy))
    replayed = replay(read_journal(path), Scheduler)
    assert (replayed.difference, replayed.runs) == (None, 1)
    assert "lonely_policy" not in sys.modules


def test_one_that_raises_is_shown_with_its_error_and_counted() -> None:
    policy = f"{EXAMPLES}:Raises"
    with world(conf(policy)) as running:
        shown = eventually(lambda: custom(running)["error"] and custom(running))
        assert shown["error"].startswith("LookupError: no such model (examples.py, line ")
        assert shown["retryAt"] > shown["since"]
        found = [one["reason"] for one in running.get(f"{API}/decisions").json["decisions"]]
        assert found.count("policy_failed") == 1
        metrics = running.get("/elastic/metrics").text
        assert f'spark_elastic_custom_policy_failures_total{{policy="{policy}"}} 1' in metrics
        assert f'spark_elastic_custom_policy_answers_total{{policy="{policy}"}} 0' in metrics


@pytest.mark.parametrize(
    ("policy", "options", "says"),
    [
        ("no_such_package:Policy", {}, "the policy no_such_package:Policy cannot be imported"),
        (f"{EXAMPLES}:Steady", {"slots": "x"}, "cannot be made with slots=x: ValueError"),
        ("late-nihgt", {}, "there is no policy late-nihgt, allowed are declared, "),
    ],
)
def test_one_that_cannot_be_had_is_an_error_of_the_settings(
    started_since: Callable[[], list[psutil.Process]], policy: str, options: dict[str, str], says: str
) -> None:
    clock = SteppedClock(START)
    gateway = MemoryGateway(clock, end=START + 5_000)
    gateway.offer(snapshot(conf(policy, **options)))
    Loop(gateway, clock, Scheduler, lambda *_: Journal(None), custom=Host()).run()
    (off,) = gateway.actions
    assert isinstance(off, TurnOff)
    assert off.message.startswith("unusable settings: ")
    assert says in off.message
    assert started_since() == []


def test_a_policy_that_hangs_does_not_keep_the_process_from_ending() -> None:
    """No answer of the policy ends the process, only the driver does."""
    settings = {"journal.dir": "none", "schedulerMode": "adaptive", "policy": f"{EXAMPLES}:HoldsTheLock"}
    answer = first(**settings)
    later = {
        "events": [encode_event(ev.ExecutorAdded(id="s2", at=START + 1, executor="1", host="h", cores=1))]
    }
    began = time.monotonic()
    with Driver(answer, *[later] * 5) as driver, started(driver.line) as process:
        code, said = ended(process)
    assert code == 0, said
    assert time.monotonic() - began < 20
