"""Tests of the play of the mode autoscale on a simulated Spark: the policy follows the play's steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic.core.actions import Action
from spark_elastic.core.events import Event
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.settings import load
from spark_elastic_lab.demo import plugin
from spark_elastic_lab.demo.check import check_steps
from spark_elastic_lab.demo.chronicle import Chronicle
from spark_elastic_lab.demo.scenario import Scenario, check_orders
from spark_elastic_lab.demo.steps import PLAYS, Mode
from spark_elastic_lab.simulator.batches import BatchCost
from spark_elastic_lab.simulator.cluster import ClusterSpec
from spark_elastic_lab.simulator.driver import Driver
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.scenario import Scenario as Simulated

PLAY = PLAYS[Mode.AUTOSCALE]
ROWS_IN_A_PART = 6_000_000 * PLAY.scale / PLAY.parts
INTERVAL_S, LOOKUP_MS = int(PLAY.options[0].split()[0]), float(PLAY.options[1])
# The scenario begins when each query has run a micro-batch.
SETTLED_IN_S = 10


class Everywhere:
    """Tasks that run on each executor as soon as it has started."""

    def first_on(self, executor: str, moment: int, query: str | None = None) -> int:
        return moment


class Watched(Scheduler):
    """A scheduler, and a scenario that receives all of its events and actions."""

    def __init__(self, settings: dict[str, str]) -> None:
        super().__init__(load(settings).core())
        self.chronicle = Chronicle()
        self.scenario = Scenario(
            queries=2,
            tasks=Everywhere(),
            steps=PLAY.steps,
            end_s=PLAY.end_s,
            timeout_s=PLAY.timeout_s,
        )

    def handle(self, event: Event) -> tuple[Action, ...]:
        self.chronicle.follow(event)
        self.scenario.observe(self.chronicle, event.at)
        queries = self.chronicle.queries.values()
        if len(queries) == 2 and all(query.batches for query in queries):
            self.scenario.begin_next(event.at)
        actions = super().handle(event)
        for action in actions:
            self.chronicle.order(action)
        return actions


def rates() -> list[float]:
    """Return the rows of each second according to the steps."""
    found: list[float] = []
    interval_s = PLAY.interval_s or 0.0
    for step in PLAY.steps:
        found += [ROWS_IN_A_PART / interval_s] * (SETTLED_IN_S + int(step.at_s) - len(found))
        interval_s = step.interval_s or interval_s
    return found + [ROWS_IN_A_PART / interval_s] * 200


@pytest.mark.parametrize("fixed_ms", [400, 800, 1200, 1600])
def test_executors_go_come_and_go(fixed_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "jar_path", lambda: tmp_path / "spark-elastic_4.2_2.13-0.1.0.jar")
    conf = plugin.demo_conf(tmp_path, Mode.AUTOSCALE)
    settings = {key: value for key, value in conf.items() if key.startswith("spark.elastic.")}
    came = Load(rates())
    cost = BatchCost(fixed_ms=fixed_ms, work_us=1_000 * LOOKUP_MS)
    room = sum(PLAY.workers)
    simulated = Simulated(
        queries=(
            QuerySpec(name="enrichment", load=came, trigger_s=INTERVAL_S, stateful=False, cost=cost),
            QuerySpec(name="totals", load=came, trigger_s=INTERVAL_S, cost=BatchCost(fixed_ms=fixed_ms)),
        ),
        cluster=ClusterSpec(cores=1, initial=room, quota=room, startup_s=8),
        settings=settings,
        hours=(PLAY.end_s + 60) / 3600,
    )
    watched = Watched(settings)
    Driver(simulated, watched, simulated.loads()).run()
    checks = [
        *check_steps(PLAY.steps, watched.scenario.outcomes, watched.chronicle),
        check_orders(watched.chronicle),
    ]
    assert [check for check in checks if not check.ok] == []
