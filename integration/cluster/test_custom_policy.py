"""Tests of custom policies on a cluster: one that works, one that starts to raise, one that starts to hang.

Their module is not part of the installation: the driver's Python finds it by its path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from integration.cluster.application import Application, application
from integration.cluster.lines import ONE_SLOT_EACH, Lines, start_slow
from integration.cluster.lines import lines as lines
from integration.streaming.driver import Driver
from integration.streaming.http import Client
from integration.streaming.launch import python_that_finds
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import Decision
from spark_elastic.core.policies.policy import AskPolicy, PolicyAnswered
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

WORKERS = 4
GRANTED = {"works": 2, "raises": 1, "hangs": 1}
ROWS_PER_S = 40
# A failed policy is asked again after 10 s and 20 s; a hanging one takes 5 s before that.
RETRIED_S = 120.0

POLICIES = '''
import time
from pathlib import Path

from spark_elastic.policies import ClusterView, QueryWish, Wish


class Works:
    """Wants so many slots, and breaks in its own way once there is a file of its name."""

    def __init__(self, slots: str, folder: str) -> None:
        self.slots, self.folder = int(slots), Path(folder)

    def decide(self, view: ClusterView) -> Wish:
        if (self.folder / type(self).__name__).exists():
            self.fail()
        wish = QueryWish(slots=self.slots, reason=f"{self.slots} are always enough")
        return Wish(queries=dict.fromkeys(view.queries, wish))

    def fail(self) -> None:
        raise NotImplementedError


class Raises(Works):
    def fail(self) -> None:
        raise LookupError("the model is gone")


class Hangs(Works):
    def fail(self) -> None:
        while True:
            time.sleep(1)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("custom")


@pytest.fixture(scope="module")
def app(master: Cluster, jvm: Driver, tables: Tables, folder: Path) -> Iterator[Application]:
    (folder / "shift_plan.py").write_text(POLICIES)
    conf = {
        **ONE_SLOT_EACH,
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.python": python_that_finds(folder),
        "spark.ui.enabled": "true",
        "spark.elastic.slotIdleTimeout": "2s",
        "spark.elastic.maxExecutors": str(WORKERS),
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    }
    for query, slots in GRANTED.items():
        policy = query.capitalize()
        conf[f"spark.elastic.query.{query}.policy"] = f"shift_plan:{policy}"
        conf[f"spark.elastic.policy.{policy}.slots"] = str(slots)
        conf[f"spark.elastic.policy.{policy}.folder"] = str(folder)
    with application(master, jvm, tables, folder, conf) as running:
        yield running


def answers(app: Application, query: str) -> list[PolicyAnswered]:
    name = f"shift_plan:{query.capitalize()}"
    events = (seen.event for seen in app.story.seen)
    return [event for event in events if isinstance(event, PolicyAnswered) and event.policy == name]


def granted(app: Application) -> dict[str, int]:
    """Return the slots last granted to each query, according to its decisions."""
    names = {query.query: query.name for query in app.story.queries.values()}
    said = [decision for decision in app.story.said if decision.reason == "policy_says"]
    return {names[one.query]: one.after for one in said if one.query in names and one.after is not None}


def said_of(app: Application, reason: str, query: str) -> list[Decision]:
    policy = f"shift_plan:{query.capitalize()}"
    return [one for one in app.story.said if one.reason == reason and one.numbers["policy"] == policy]


def shown(app: Application) -> dict[str, str | None]:
    """Return each policy's error according to the REST API, None if it answers."""
    overview = Client(app.spark.sparkContext.uiWebUrl or "", "/elastic/api/v1").get("/overview").json
    return {one["name"].partition(":")[2].lower(): one["error"] for one in overview["customPolicies"]}


def hosts() -> list[psutil.Process]:
    """Return the processes of custom policies, descendants of this one."""
    found = []
    for child in psutil.Process(os.getpid()).children(recursive=True):
        try:
            if any("spark_elastic.runtime.custom" in part for part in child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


def test_each_query_gets_what_its_policy_wants(app: Application, lines: Lines) -> None:
    lines.rows_per_s = ROWS_PER_S
    app.have_workers(WORKERS)
    for query in GRANTED:
        app.start(query, start_slow(lines))
    eventually(lambda: granted(app) == GRANTED, "each has what its policy wants")
    assert {order.policy for order in app.story.orders if isinstance(order, AskPolicy)} == {
        f"shift_plan:{query.capitalize()}" for query in GRANTED
    }


def test_what_a_policy_wanted_last_stays_while_it_fails_and_it_is_said_once(
    app: Application, folder: Path
) -> None:
    before = len(answers(app, "works"))
    for query in ("raises", "hangs"):
        (folder / query.capitalize()).touch()

    def failed_twice() -> bool:
        app.check_alive()
        return all(
            sum(answer.error is not None for answer in answers(app, query)) >= 2
            for query in ("raises", "hangs")
        )

    eventually(failed_twice, "both have failed twice", timeout_s=RETRIED_S, every_s=0.5)
    for query, words in (("raises", "LookupError: the model is gone"), ("hangs", "not answered within 5 s")):
        (failed,) = eventually(partial(said_of, app, "policy_failed", query), "it is said")
        assert words in failed.message
    errors = shown(app)
    assert errors["works"] is None
    assert "LookupError" in (errors["raises"] or "")
    assert "not answered" in (errors["hangs"] or "")
    assert granted(app) == GRANTED
    eventually(lambda: len(answers(app, "works")) > before, "the others are still asked")
    eventually(lambda: len(hosts()) <= len(GRANTED), "each has one process")


def test_one_that_is_repaired_counts_again(app: Application, folder: Path) -> None:
    for query in ("raises", "hangs"):
        (folder / query.capitalize()).unlink()
    eventually(
        lambda: all(said_of(app, "policy_recovered", query) for query in ("raises", "hangs")),
        "both answer again",
        timeout_s=2 * RETRIED_S,
        every_s=0.5,
    )
    eventually(lambda: set(shown(app).values()) == {None}, "no policy is without an answer")


def test_a_policy_that_hangs_keeps_nothing_from_ending_and_the_journal_needs_none(
    app: Application, folder: Path, lines: Lines
) -> None:
    (folder / "Hangs").touch()
    asked = len(answers(app, "hangs"))
    eventually(lambda: len(answers(app, "hangs")) > asked, "it was asked once more")
    lines.__exit__()
    for query in app.queries.values():
        query.stop()
    # The replay runs without the module of the policies, which is not on this process's path.
    app.check_journal()
    eventually(lambda: not hosts(), "no process of a policy is left")
