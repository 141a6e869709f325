"""Tests that a run that is killed leaves no process, and that the next run removes what else it left."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from integration.kubernetes.groups import runs_with_groups
from integration.kubernetes.leftovers import NETWORK, remove_abandoned
from integration.streaming.waiting import eventually

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("scratch"),
]

_RUN = """
import time
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.leftovers import folder_of_this_run
with folder_of_this_run() as folder, Cluster(folder / "cluster") as cluster:
    cluster.add_node()
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def run() -> Iterator[subprocess.Popen[str]]:
    """Start a cluster with a node in another process."""
    command = [sys.executable, "-c", _RUN]
    checkout = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


def ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True).stdout


def namespaces(name: str) -> list[str]:
    return [line.split()[0] for line in ip("netns", "list").splitlines() if line.startswith(f"{name}-")]


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_run_that_is_killed(run: subprocess.Popen[str]) -> None:
    name = f"{NETWORK}{run.pid}"
    pids = {int(pid) for each in namespaces(name) for pid in ip("netns", "pids", each).split()}
    names = {psutil.Process(pid).name() for pid in pids}
    assert {"etcd", "kube-apiserver", "kubelet", "containerd"} <= names
    folder = Path(tempfile.gettempdir(), f"spark-elastic-{name}")
    assert (folder.exists(), name in runs_with_groups(NETWORK)) == (True, True)

    remove_abandoned()
    assert all(map(is_running, pids)), "a living run is left alone"
    assert folder.exists()

    run.kill()
    run.wait()
    eventually(lambda: not any(map(is_running, pids)), "no process is left")
    remove_abandoned()
    assert namespaces(name) == []
    eventually(lambda: name not in ip("-o", "link"), "its link is gone")
    assert (folder.exists(), name in runs_with_groups(NETWORK)) == (False, False)
