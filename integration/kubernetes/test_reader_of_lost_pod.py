"""Tests that a task which reads from a pod that goes gives up soon: by Spark's own timeouts after 75 s."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application
from integration.kubernetes.bounds import at_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.losses import delete
from integration.streaming.http import Client
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_EXECUTORS = 2
# Every other task of the program is shorter.
_READS_S = 4.0
# A micro-batch that is undisturbed, once more for what was lost, and the timeouts.
_GIVEN_UP_S = 75.0
_SLOW_READER = Path(__file__).with_name("apps") / "slow_reader.py"
_ONE_BY_ONE = {"spark.reducer.maxReqsInFlight": "1", "spark.reducer.maxBlocksInFlightPerAddress": "1"}


@pytest.fixture(scope="module")
def app(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    folder = tmp_path_factory.mktemp("reader")
    with at_bounds(cluster, folder, _EXECUTORS, _ONE_BY_ONE, program=_SLOW_READER) as running:
        yield running


def idle_while_another_reads(app: Application) -> str:
    """Wait until one executor has read for some time and the other has nothing to do; return its pod."""
    client = Client(f"http://{app.driver}", "/api/v1")
    (application,) = client.get("/applications").json
    seen: list[tuple[str, float]] = []

    def look() -> str | None:
        listed = client.get(f"/applications/{application['id']}/executors").json
        busy = {each["id"]: each["activeTasks"] for each in listed if each["id"] != "driver"}
        idle = [id_ for id_, tasks in busy.items() if tasks == 0]
        if len(busy) != _EXECUTORS or len(idle) != 1:
            seen.clear()
            return None
        if not seen or seen[0][0] != idle[0]:
            seen[:] = [(idle[0], time.monotonic())]
        return idle[0] if time.monotonic() - seen[0][1] > _READS_S else None

    found = eventually(look, "one executor reads and the other is idle", IN_FORCE_S, every_s=0.2)
    pods = {pod["metadata"]["labels"]["spark-exec-id"]: pod["metadata"]["name"] for pod in app.pods()}
    return str(pods[found])


def test_a_task_that_reads_from_a_pod_that_goes(app: Application, figures: Figures) -> None:
    with figures.of("a pod is deleted while a task reads from it", app.data):
        lost = idle_while_another_reads(app)
        app.lose(lost, delete)
        app.wait_for(_EXECUTORS)
    assert float(figures.rows[-1]["longest gap of output"]) < _GIVEN_UP_S


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
