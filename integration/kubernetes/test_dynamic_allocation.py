"""Tests beside Spark's own allocation of executors: what keeps an executor, and a second resource profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application, in_client_mode
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.losses import delete, kill
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_MOST = 2
# What rows take, and the trigger: the tasks of the input keep one slot and more busy, but not two.
_SLOW = ("15", "300 milliseconds")
_ALLOCATION = "spark.dynamicAllocation"
CONF = {
    f"{_ALLOCATION}.enabled": "true",
    f"{_ALLOCATION}.minExecutors": "1",
    f"{_ALLOCATION}.initialExecutors": "1",
    f"{_ALLOCATION}.maxExecutors": str(_MOST),
    f"{_ALLOCATION}.schedulerBacklogTimeout": "1s",
    f"{_ALLOCATION}.sustainedSchedulerBacklogTimeout": "1s",
    f"{_ALLOCATION}.executorIdleTimeout": "10s",
    "spark.executor.instances": None,
    # With dynamic allocation a query has as many partitions as in plain Spark.
    "spark.sql.shuffle.partitions": "4",
    "spark.decommission.enabled": "true",
}
TRACKED = {f"{_ALLOCATION}.shuffleTracking.timeout": "10s"}
MOVED = {
    f"{_ALLOCATION}.shuffleTracking.enabled": "false",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
}
TWO_PROFILES = Path(__file__).with_name("apps") / "two_profiles.py"
_PROFILE = "spark-exec-resourceprofile-id"


# Before the others: their application would have executors in the namespace, too.
def test_executors_of_two_resource_profiles(cluster: Cluster, tmp_path: Path, figures: Figures) -> None:
    conf = {**CONF, **TRACKED, f"{_ALLOCATION}.maxExecutors": "1"}
    with in_client_mode(cluster, tmp_path, conf, program=TWO_PROFILES) as app:
        app.data.feed.start()

        def profiles() -> dict[str, str]:
            live = set(app.running())
            return {
                pod["metadata"]["name"]: pod["metadata"]["labels"][_PROFILE]
                for pod in app.pods()
                if pod["metadata"]["name"] in live
            }

        def one_of_each() -> bool:
            return Counter(profiles().values()) == {"0": 1, "1": 1}

        eventually(one_of_each, "an executor of each profile", IN_FORCE_S, every_s=0.2)
        app.goes_on()
        for profile in ("0", "1"):
            (pod,) = [name for name, its in profiles().items() if its == profile]
            with figures.of(f"the only executor of resource profile {profile} is lost", app.data):
                app.lose(pod, kill)
                eventually(one_of_each, "another one of its profile", IN_FORCE_S, every_s=0.2)
                app.goes_on()
        app.data.check()


@pytest.fixture(scope="module", params=[TRACKED, MOVED], ids=["tracked", "moved"])
def app(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    folder, conf = tmp_path_factory.mktemp("allocation"), {**CONF, **request.param}
    with in_client_mode(cluster, folder, conf, arguments=_SLOW) as running:
        running.data.feed.start()
        eventually(lambda: running.data.written() != [], "the query has output", IN_FORCE_S, every_s=0.2)
        yield running


def have(app: Application, count: int) -> None:
    """Wait until so many executors run, and the policy knows them."""
    eventually(
        lambda: len(app.pods()) == len(app.running()) == app.slots() == count,
        f"{count} executors",
        IN_FORCE_S,
        every_s=0.2,
    )


def test_executors_come_with_tasks_and_a_lost_one_is_replaced(
    app: Application, request: pytest.FixtureRequest, figures: Figures
) -> None:
    have(app, _MOST)
    kind = request.node.callspec.id
    with figures.of(f"dynamic allocation, shuffle data {kind}: a pod of two is deleted", app.data):
        app.lose(app.running()[0], delete)
        have(app, _MOST)


def test_the_output_is_exact_and_an_idle_executor_goes(app: Application) -> None:
    app.data.check()
    have(app, 1)
