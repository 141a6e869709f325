"""One Kubernetes for all tests here, with one node, and the rights that the manifests give to drivers."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.jar.each_jar import INSTALLED
from integration.jar.wheel import build_wheel
from integration.kubernetes.application import ACCOUNT, MANIFESTS, NAMESPACE, SUBMITTER
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.images import Images, unmade
from integration.kubernetes.leftovers import folder_of_this_run
from integration.kubernetes.node import Node
from integration.kubernetes.parts import unbuilt
from integration.sequel import in_sequence as in_sequence
from integration.sequel import sequel as sequel

_FIGURES = pytest.StashKey[Figures]()


@pytest.fixture(scope="package", autouse=True)
def interrupted_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that all fixtures clean up."""

    def interrupt(*_: object) -> None:
        # `timeout` sends it twice, and cleaning up must not be interrupted. Child processes do not inherit a
        # handler, but they would inherit that a signal is ignored.
        signal.signal(signal.SIGTERM, lambda *_: None)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="package")
def scratch() -> Iterator[Path]:
    """Return a folder for gigabytes."""
    reason = unbuilt() or unmade()
    if reason is not None:
        pytest.skip(reason)
    with folder_of_this_run() as folder:
        yield folder


@pytest.fixture(scope="package")
def images(scratch: Path) -> Images:
    return Images(scratch / "images")


@pytest.fixture(scope="package")
def archive(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the image with spark-elastic, made by the product's Dockerfile from this checkout."""
    return images.elastic(build_wheel(tmp_path_factory.mktemp("wheel"), INSTALLED))


@pytest.fixture(scope="package")
def cluster(archive: Path, scratch: Path) -> Iterator[Cluster]:
    """Start Kubernetes with the namespace, account and role of the manifests."""
    with Cluster(scratch / "cluster") as running:
        running.add_node(images=[archive])
        running.kubectl.run("create", "namespace", NAMESPACE)
        objects = (MANIFESTS / "manifests" / "adaptive-submit.yaml").read_text()
        running.kubectl.within(NAMESPACE).apply(objects)
        yield running
    assert running.left_over() == []


@pytest.fixture(scope="module")
def other(cluster: Cluster, archive: Path) -> Iterator[Node]:
    """Return a second node, which takes pods during the tests of a module."""
    if len(cluster.nodes) == 1:
        cluster.add_node(images=[archive])
    node = cluster.nodes[1]
    cluster.kubectl.run("uncordon", node.place.name)
    yield node
    cluster.kubectl.run("cordon", node.place.name)


@pytest.fixture(scope="package")
def submitter(cluster: Cluster) -> None:
    """Give an account the rights of drivers and, as Spark 4.2 needs, to create network policies."""
    kubectl = cluster.kubectl.within(NAMESPACE)
    kubectl.run("create", "serviceaccount", SUBMITTER)
    policies = "--resource=networkpolicies.networking.k8s.io"
    kubectl.run("create", "role", SUBMITTER, "--verb=get,create,patch", policies)
    for role in (ACCOUNT, SUBMITTER):
        account = f"--serviceaccount={NAMESPACE}:{SUBMITTER}"
        kubectl.run("create", "rolebinding", f"{SUBMITTER}-as-{role}", f"--role={role}", account)


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> Figures:
    """Keep what the tests measure; it is printed at the end."""
    return request.config.stash.setdefault(_FIGURES, Figures())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    measured = terminalreporter.config.stash.get(_FIGURES, None)
    if measured is not None:
        terminalreporter.section("measured on Kubernetes")
        for line in measured.lines():
            terminalreporter.write_line(line)
        terminalreporter.write_line(json.dumps(measured.rows))
