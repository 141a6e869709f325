"""Tests that a query goes on while pods of a higher priority have taken an executor's place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application
from integration.kubernetes.bounds import at_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.objects import Object, existing, filler
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_EXECUTORS = 2
# Of a node with two cores: both executors fit, and the other pod fits beside one of them.
_CORES, _OTHER = 0.7, "1000m"
URGENT: Object = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
}


@pytest.fixture(scope="module")
def app(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    folder = tmp_path_factory.mktemp("preempted")
    with at_bounds(cluster, folder, _EXECUTORS, cores=_CORES) as running:
        yield running


def test_an_executor_that_is_preempted_comes_back(app: Application, figures: Figures) -> None:
    before = set(app.running())
    with existing(app.kubectl, URGENT), existing(app.kubectl, filler(_OTHER, priorityClassName="urgent")):
        with figures.of("a pod of two preempted, goes on with the other", app.data):
            app.kubectl.run("wait", "--for=condition=Ready", "pod/filler", "--timeout=120s")
            eventually(lambda: app.slots() == 1, "one slot", IN_FORCE_S, every_s=0.2)
        assert len(before & set(app.running())) == 1
        app.goes_on()
        # What is asked for in its place is pending.
        assert (len(app.pods()), len(app.running())) == (_EXECUTORS, 1)
    with figures.of("the pod of higher priority has gone", app.data):
        app.wait_for(_EXECUTORS)


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
