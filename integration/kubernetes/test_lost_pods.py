"""Tests that a query survives the ways in which Kubernetes loses pods, with exact output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application, in_client_mode
from integration.kubernetes.bounds import AT_BOUNDS, write_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.kubectl import Refused
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_EXECUTORS = 2
_FILL = """
echo 1000 >"/proc/$(pgrep -x java)/oom_score_adj"
for _ in 1 2 3 4 5 6 7 8 9; do
  python3 -c 'import time; filled = b"x" * (90 << 20); time.sleep(100)' &
done
wait
"""


@pytest.fixture(scope="module")
def app(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    policy = write_bounds(tmp_path_factory.mktemp("policy") / "policy.yaml", _EXECUTORS)
    conf = {**AT_BOUNDS, "spark.elastic.policyFile": str(policy)}
    with in_client_mode(cluster, tmp_path_factory.mktemp("lost"), conf) as running:
        running.data.feed.start()
        running.wait_for(_EXECUTORS)
        yield running


def delete(app: Application, pod: str) -> None:
    """Delete as a user does: the pod has its grace period."""
    app.kubectl.run("delete", "pod", pod, "--wait=false")


def kill(app: Application, pod: str) -> None:
    """Delete without a grace period, as when its node has died."""
    app.kubectl.run("delete", "pod", pod, "--grace-period=0", "--force")


def evict(app: Application, pod: str) -> None:
    """Evict as an autoscaler of nodes, or a drain, does."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    path = f"/api/v1/namespaces/{app.kubectl.namespace}/pods/{pod}/eviction"
    app.kubectl.run("create", "--raw", path, "--filename=-", stdin=json.dumps(eviction))


def fill_memory(app: Application, pod: str) -> None:
    """Let the kernel kill the executor because its container is out of memory."""
    # The kernel kills the largest process, so no hog may be it. They end with their container.
    with suppress(Refused):
        app.kubectl.run("exec", pod, "--", "sh", "-c", _FILL)
    app.process.wait_for_line("exited with exit code 137", IN_FORCE_S)


@pytest.mark.parametrize("lose", [delete, kill, evict, fill_memory])
def test_a_pod_that_is_lost_is_replaced(
    app: Application, lose: Callable[[Application, str], None], figures: Figures
) -> None:
    lost = app.running()[0]
    with figures.of(f"a pod of two: {lose.__name__}", app.data):
        lose(app, lost)
        eventually(
            lambda: lost not in (now := app.running()) and len(now) == _EXECUTORS,
            "another pod runs",
            IN_FORCE_S,
            every_s=0.2,
        )
        app.wait_for(_EXECUTORS)


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
