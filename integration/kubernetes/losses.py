"""The ways in which Kubernetes loses a pod."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress

from integration.kubernetes.kubectl import Kubectl, Refused

_FILL_S = 60.0
_FILL = """
echo 1000 >"/proc/$(pgrep -x java)/oom_score_adj"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
  python3 -c 'import time; filled = b"x" * (90 << 20); time.sleep(100)' &
done
wait
"""


def delete(kubectl: Kubectl, pod: str) -> None:
    """Delete as a user does: the pod has its grace period."""
    kubectl.run("delete", "pod", pod, "--wait=false")


def kill(kubectl: Kubectl, pod: str) -> None:
    """Delete without a grace period, as when its node has died."""
    kubectl.run("delete", "pod", pod, "--grace-period=0", "--force")


def evict(kubectl: Kubectl, pod: str) -> None:
    """Evict as an autoscaler of nodes, or a drain, does."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/eviction"
    kubectl.run("create", "--raw", path, "--filename=-", stdin=json.dumps(eviction))


def fill_memory(kubectl: Kubectl, pod: str) -> None:
    """Let the kernel kill the executor because its container is out of memory."""
    # The kernel kills the largest process, so no hog may be it. They end with their container.
    with suppress(Refused, subprocess.TimeoutExpired):
        kubectl.run("exec", pod, "--", "sh", "-c", _FILL, timeout_s=_FILL_S)
