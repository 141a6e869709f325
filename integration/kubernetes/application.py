"""An application that spark-submit starts on Kubernetes, in either deploy mode."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import define, field

from integration.kubernetes.cluster import Cluster
from integration.kubernetes.images import ELASTIC_IMAGE
from integration.kubernetes.kubectl import Kubectl, Refused
from integration.kubernetes.leftovers import tied
from integration.streaming.driver import PLUGIN
from integration.streaming.http import Client
from integration.streaming.launch import APPS
from integration.streaming.upserts import Values, last_values
from integration.streaming.waiting import eventually
from spark_elastic.jar import jar_path
from spark_elastic.spark_conf import read_properties
from spark_elastic_lab.demo.cluster import SMALL_JVM, isolated_environment, spark_home
from spark_elastic_lab.demo.processes import LoggedProcess
from spark_elastic_lab.demo.source import Steady

MANIFESTS = Path(__file__).parents[2] / "conf" / "kubernetes"
API = "/elastic/api/v1"
NAMESPACE = "spark"
ACCOUNT = "orders-driver"
SUBMITTER = "spark-submitter"
# The program's only query.
QUERY = "upserts"
PROGRAM = APPS / "steady_upserts.py"
_KEYS = 40
_FILE_INTERVAL_S = 0.5
# A query that has paused catches up in few micro-batches, however slow each of them is.
FILES_PER_BATCH = 50
_UI_PORT = 4040
# Micro-batches that a query goes on with while something is missing.
_BATCHES = 15
_START_S = 180.0
_END_S = 20.0
# Pods start one by one on few cores.
IN_FORCE_S = 240.0


class Feed(Steady):
    """Adds a file with one value of each key every half second."""

    def __init__(self, values: Values) -> None:
        super().__init__(interval_s=_FILE_INTERVAL_S)
        self._values = values

    def deliver(self) -> None:
        self._values.put(1)


@define
class Data:
    """Input, checkpoint and output of the program, in one folder that all pods have at the same path.

    `keys` is the number of keys that the feed begins with.
    """

    folder: Path
    keys: int = _KEYS
    values: Values = field(init=False)
    feed: Feed = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.values = Values(self.input, self.keys)
        for place in (self.output, self.checkpoint):
            place.mkdir()
        for place in (self.folder, self.input, self.output, self.checkpoint):
            # The image has a user of its own.
            place.chmod(0o777)
        self.feed = Feed(self.values)

    @property
    def input(self) -> Path:
        return self.folder / "input"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def arguments(self) -> list[str]:
        return [str(self.input), str(self.checkpoint), str(self.output), str(FILES_PER_BATCH)]

    def written(self) -> list[float]:
        """Return when each micro-batch was written, in epoch seconds, the earliest first."""
        return sorted(done.stat().st_mtime for done in self.output.glob("*/_SUCCESS"))

    def longest_gap_since(self, moment: float) -> float:
        """Return the longest time without output since a moment (epoch seconds), in seconds."""
        before = [at for at in self.written() if at < moment][-1:]
        after = [at for at in self.written() if at >= moment]
        times = [*before, *after]
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)

    def check(self) -> None:
        """End the input, wait until all of it has been processed, and compare the output with it."""
        self.feed.stop()
        expected: pa.Table = self.values.expected()

        def complete() -> bool:
            # A micro-batch that is being written has no columns yet.
            if any(not (batch / "_SUCCESS").exists() for batch in self.output.iterdir()):
                return False
            return bool(last_values(self.output).equals(expected))

        eventually(complete, "the output is complete", IN_FORCE_S, every_s=1)

    def volume(self, role: str) -> dict[str, str]:
        """Return the settings that give the folder to the pods of a role."""
        volume = f"spark.kubernetes.{role}.volumes.hostPath.data"
        return {f"{volume}.mount.path": str(self.folder), f"{volume}.options.path": str(self.folder)}


@define
class Application:
    """An application: the process of spark-submit, and how to reach its driver."""

    process: LoggedProcess
    kubectl: Kubectl
    data: Data
    driver: str

    @property
    def client(self) -> Client:
        return Client(f"http://{self.driver}", API)

    def executors(self) -> list[dict[str, Any]]:
        """Return the executors that the policy knows."""
        found: list[dict[str, Any]] = self.client.get("/overview").json["executors"]
        return found

    def slots(self) -> int:
        return int(self.client.get("/overview").json["slots"]["now"])

    def shown(self) -> dict[str, Any] | None:
        """Return the query, None before it is known."""
        reply = self.client.get("/queries")
        # Until the policy is up, the answer is an error.
        queries = reply.json["queries"] if reply.status == 200 else []
        found: dict[str, Any] | None = next((each for each in queries if each["name"] == QUERY), None)
        return found

    def partitions(self) -> int | None:
        """Return the number of partitions of the last micro-batch."""
        shown = self.shown()
        last = None if shown is None else shown["lastBatch"]
        return None if last is None else int(last["partitions"])

    def reasons(self) -> list[str]:
        """Return the reasons of the latest decisions."""
        return [each["reason"] for each in self.client.get("/decisions").json["decisions"]]

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods of executors that have not ended."""
        pods = self.kubectl.items("pods", "spark-role=executor")
        return [pod for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]

    def running(self) -> list[str]:
        """Return the names of the running pods of executors, the oldest first."""
        return [each["name"] for each in sorted(self._live(), key=number_of)]

    def running_ids(self) -> set[str]:
        """Return the ids of the executors whose pods run."""
        return {each["labels"]["spark-exec-id"] for each in self._live()}

    def _live(self) -> list[dict[str, Any]]:
        live = [pod["metadata"] for pod in self.pods() if pod["status"]["phase"] == "Running"]
        return [each for each in live if "deletionTimestamp" not in each]

    def nodes(self) -> list[str]:
        """Return the node of each running executor, the oldest first."""
        node = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in self.pods()}
        return [str(node[name]) for name in self.running() if name in node]

    def goes_on(self) -> None:
        """Wait for some micro-batches."""
        before = len(self.data.written())
        eventually(lambda: len(self.data.written()) >= before + _BATCHES, "the query goes on", every_s=0.2)

    def lose(self, pod: str, lose: Callable[[Kubectl, str], None]) -> None:
        """Lose an executor's pod, and wait until another one runs in its place."""
        count = len(self.running())
        lose(self.kubectl, pod)
        eventually(
            lambda: pod not in (now := self.running()) and len(now) == count,
            "another pod runs",
            IN_FORCE_S,
            every_s=0.2,
        )

    def wait_for(self, partitions: int, slots: int | None = None) -> None:
        """Wait until a micro-batch has run with so many partitions, and there are as many slots.

        All of them are on executors whose pods run: Kubernetes knows before Spark that a pod has gone.
        """

        def look() -> bool:
            if self.partitions() != partitions or self.slots() != (slots or partitions):
                return False
            return {each["id"] for each in self.executors()} == self.running_ids()

        eventually(look, f"{partitions} partitions and slots", IN_FORCE_S, every_s=0.2)


def number_of(metadata: Mapping[str, Any]) -> int:
    """Return an executor's id, by which later ones are larger."""
    return int(metadata["labels"]["spark-exec-id"])


# What application.conf has against lost and refused pods.
_AGAINST_LOSSES = (
    "spark.executor.maxNumFailures",
    "spark.shuffle.io.connectionCreationTimeout",
    "spark.shuffle.io.connectionTimeout",
)
_SHIPPED = read_properties(MANIFESTS / "submit" / "application.conf")
SMALL: dict[str, str] = {
    "spark.driver.memory": "768m",
    "spark.driver.extraJavaOptions": SMALL_JVM,
    "spark.executor.instances": "1",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.memoryOverhead": "256m",
    "spark.executor.extraJavaOptions": SMALL_JVM,
    # Spark asks for pods in rounds.
    "spark.kubernetes.allocation.batch.delay": "200ms",
    "spark.ui.showConsoleProgress": "false",
    **{name: _SHIPPED[name] for name in _AGAINST_LOSSES},
    **PLUGIN,
}
"""Settings for a machine with few cores, and what application.conf has against lost and refused pods."""


@contextmanager
def in_client_mode(
    cluster: Cluster,
    folder: Path,
    conf: Mapping[str, str | None],
    cores: float = 0.2,
    pod: Mapping[str, object] | None = None,
    program: Path = PROGRAM,
    arguments: Sequence[str] = (),
) -> Iterator[Application]:
    """Run a program with its driver on this machine; pods of executors ask for `cores`, and have `pod`.

    A setting that is None is left out. `arguments` are those of the program behind the number of files.
    """
    data = Data(folder / "data")
    template = folder / "executor.yaml"
    # The driver's files belong to the user of this process.
    spec = {"securityContext": {"runAsUser": os.getuid()}, **(pod or {})}
    template.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": spec}))
    settings: dict[str, str | None] = {
        **SMALL,
        "spark.driver.host": cluster.host,
        "spark.driver.bindAddress": cluster.host,
        "spark.driver.extraClassPath": str(jar_path()),
        "spark.ui.port": "0",
        "spark.elastic.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.kubernetes.namespace": NAMESPACE,
        "spark.kubernetes.container.image": ELASTIC_IMAGE,
        "spark.kubernetes.executor.request.cores": str(cores),
        "spark.kubernetes.executor.podTemplateFile": str(template),
        **data.volume("executor"),
        **conf,
    }
    kubectl = cluster.kubectl.within(NAMESPACE)
    given = {key: value for key, value in settings.items() if value is not None}
    command = [str(program), *data.arguments, *arguments]
    with _submitted(cluster, folder, ["--deploy-mode", "client"], given, command) as process:
        try:
            port = process.wait_for_line(r"Successfully started service 'SparkUI' on port (\d+)", _START_S)[1]
            yield _known(Application(process, kubectl, data, f"{cluster.host}:{port}"))
        finally:
            data.feed.stop()
            process.stop(_END_S)
            # A driver outside of Kubernetes owns no pods: what it did not delete itself would stay.
            kubectl.run("delete", "pods", "--selector=spark-role=executor", "--grace-period=1")


@contextmanager
def in_cluster_mode(
    cluster: Cluster, folder: Path, flags: Sequence[str], conf: Mapping[str, str], data: Data
) -> Iterator[Application]:
    """Run the program with its driver in a pod; it ends with the block."""
    kubectl = cluster.kubectl.within(NAMESPACE)
    settings = {
        **SMALL,
        "spark.kubernetes.container.image": ELASTIC_IMAGE,
        "spark.kubernetes.driver.request.cores": "0.2",
        "spark.kubernetes.executor.request.cores": "0.2",
        "spark.kubernetes.driver.volumes.hostPath.program.mount.path": "/opt/app",
        "spark.kubernetes.driver.volumes.hostPath.program.options.path": str(APPS),
        "spark.kubernetes.driver.volumes.hostPath.program.mount.readOnly": "true",
        **data.volume("driver"),
        **data.volume("executor"),
        **conf,
    }
    program = [f"local:///opt/app/{PROGRAM.name}", *data.arguments]
    with _submitted(
        cluster, folder, ["--deploy-mode", "cluster", *flags], settings, program, SUBMITTER
    ) as process:
        name = process.wait_for_line(r"pod name: (\S+-driver)\b", _START_S)[1]
        try:
            address = eventually(lambda: _address(kubectl, name), "the driver runs", _START_S, every_s=0.2)
            yield _known(Application(process, kubectl, data, f"{address}:{_UI_PORT}"))
        finally:
            kubectl.run("delete", "pod", name, "--ignore-not-found")


@contextmanager
def _submitted(
    cluster: Cluster,
    folder: Path,
    flags: Sequence[str],
    conf: Mapping[str, str],
    program: Sequence[str],
    account: str = ACCOUNT,
) -> Iterator[LoggedProcess]:
    folder.mkdir(parents=True, exist_ok=True)
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", f"k8s://{cluster.server}", *flags]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    environment = {
        **isolated_environment(folder / "conf", folder / "local"),
        "SPARK_LOCAL_IP": cluster.host,
        # The rights of this account, and no others.
        "KUBECONFIG": str(cluster.account(account, NAMESPACE).config),
    }
    # A pod has a Python of its own.
    environment.pop("PYSPARK_PYTHON")
    log = folder / "spark-submit.log"
    process = LoggedProcess("spark-submit", tied([*command, *program]), env=environment, log=log, cwd=folder)
    try:
        yield process
    finally:
        process.stop()


def _known(application: Application) -> Application:
    """Wait until the policy knows the query."""

    def look() -> bool:
        assert application.process.running, application.process.log_tail()
        try:
            return application.shown() is not None
        except (OSError, ValueError):
            return False

    eventually(look, "the query is known", _START_S, every_s=0.2)
    return application


def _address(kubectl: Kubectl, pod: str) -> str | None:
    try:
        status = kubectl.get("pod", pod)["status"]
    except Refused:
        return None
    return status.get("podIP") if status["phase"] == "Running" else None
