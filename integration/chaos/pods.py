"""The target of the faults on a Kubernetes of this machine's own processes, as the chart installs it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import yaml
from attrs import define, field

from integration.chaos.rows import INTO_FILES, Feeder, Tail
from integration.chaos.settings import ADAPTIVE, CONF, LOG4J, MOST, NO_RESTARTS, RESTARTS, STATEFUL_AT
from integration.chaos.standalone import APP
from integration.chaos.world import READ_S, World
from integration.chart.helm import NAMESPACE, render
from integration.cluster.application import executors_below
from integration.jar.each_jar import INSTALLED
from integration.jar.wheel import build_wheel
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.images import ELASTIC_IMAGE, Images
from integration.kubernetes.kubectl import Kubectl, Refused
from integration.kubernetes.leftovers import folder_of_this_run, tied
from integration.kubernetes.volumes import shared
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import SMALL_JVM
from spark_elastic_lab.demo.processes import LoggedProcess
from spark_elastic_tools.client import Driver

_NODES = 2
_CLAIM = "checkpoints"
_FOLDERS = ("output", "storage", "journal")
_DRIVER_S, _CALM_S, _CODE_S, _GONE_S = 240.0, 60.0, 20.0, 120.0
_POLL_S = 0.2
_LAUNCHER = "org.apache.spark.launcher.Main"
# What the chart sets itself, or what is not there: the slow listeners, and the ports of several applications.
_NOT_HERE = ("spark.plugins", "spark.elastic.python", "spark.ui.port", "spark.executor.cores")
_NEITHER = ("spark.executor.memory", "spark.scheduler.listenerbus.")


@define
class DriverPod:
    """A container of the driver's pod, from its start to its end."""

    kubectl: Kubectl
    name: str
    uid: str
    restarts: int
    pid: int
    output: LoggedProcess

    @property
    def log(self) -> Path:
        return self.output.log

    def log_tail(self, lines: int = 20) -> str:
        return self.output.log_tail(lines)

    @property
    def running(self) -> bool:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE
        return False

    @property
    def exit_code(self) -> int | None:
        """Return how the container has ended; None while it runs, and if its pod is no longer there."""
        try:
            status = self.kubectl.get("pod", self.name)["status"]["containerStatuses"][0]
        except (Refused, LookupError):
            return None
        next_one = status["restartCount"] > self.restarts or "waiting" in status["state"]
        ended = status["lastState" if next_one else "state"].get("terminated")
        return None if ended is None else int(ended["exitCode"])

    def wait(self, timeout_s: float) -> int | None:
        deadline = time.monotonic() + timeout_s
        while self.running and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if self.running:
            return None
        # Kubernetes is told of it a moment later.
        with suppress(AssertionError):
            eventually(lambda: self.exit_code is not None, "the code is known", _CODE_S, _POLL_S)
        return self.exit_code


@define(kw_only=True)
class Pods(World):
    """The application as a Deployment with one driver, whose executors are pods."""

    cluster: Cluster
    kubectl: Kubectl
    closing: ExitStack
    process: DriverPod = field(init=False)
    # Pods start one by one on few cores, and a driver that ends often is started later each time.
    recovered_s: float = 150.0
    slots_s: float = 90.0
    started_s: float = 400.0

    def place(self, name: str) -> Path:
        return self.folder / "storage" / name

    def executors(self) -> dict[str, psutil.Process]:
        found: dict[str, psutil.Process] = {}
        for node in self.cluster.nodes:
            with suppress(psutil.NoSuchProcess):
                found |= executors_below(node.first)
        return found

    def wanted_executors(self) -> tuple[int, str]:
        return self.most, "executors that the application keeps"

    def pods(self, labels: str) -> list[dict[str, Any]]:
        """Return the pods with these labels that run and were not told to end, the oldest first."""
        running = [pod for pod in self.kubectl.items("pods", labels) if pod["status"]["phase"] == "Running"]
        live = [pod for pod in running if "deletionTimestamp" not in pod["metadata"]]
        return sorted(live, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def executor_pods(self) -> list[dict[str, Any]]:
        """Return the running pods of executors."""
        return self.pods("spark-role=executor")

    def calm(self) -> None:
        self.make_well()
        eventually(self._meet_driver, "a driver runs", _DRIVER_S, every_s=_POLL_S)
        eventually(self.open_bounds, "bounds can be set again", timeout_s=_CALM_S, every_s=_POLL_S)

    def _meet_driver(self) -> bool:
        """Look for the driver that runs now, and follow what it says; return whether there is one."""
        drivers = self.pods("app.kubernetes.io/component=driver")
        if not drivers:
            return False
        metadata, status = drivers[-1]["metadata"], drivers[-1]["status"]
        container = status["containerStatuses"][0]
        if "running" not in container["state"]:
            return False
        name, uid, restarts = metadata["name"], metadata["uid"], container["restartCount"]
        if self.logs and (self.process.uid, self.process.restarts) == (uid, restarts):
            return self.process.running
        pid = self._driver_in(uid)
        if pid is None:
            return False
        log = self.folder / f"driver-{len(self.logs) + 1}.log"
        command = tied(self.kubectl.command("logs", "--follow", name))
        environment = {**os.environ, **self.kubectl.environment}
        output = LoggedProcess(f"log of {name}", command, env=environment, log=log, cwd=self.folder)
        self.closing.callback(output.stop)
        self.process = DriverPod(self.kubectl, name, uid, restarts, pid, output)
        self.logs.append(log)
        self.api = Driver(f"http://{status['podIP']}:4040", timeout_s=READ_S)
        return True

    def _driver_in(self, uid: str) -> int | None:
        """Return the process of the JVM in a pod."""
        for node in self.cluster.nodes:
            # A child process has its name at first.
            found = psutil.Process(node.first).children(recursive=True)
            for process in sorted(found, key=psutil.Process.create_time):
                with suppress(psutil.NoSuchProcess, OSError):
                    is_here = uid in Path(f"/proc/{process.pid}/cgroup").read_text()
                    # Before it, another JVM makes up its command line.
                    if is_here and process.name() == "java" and _LAUNCHER not in process.cmdline():
                        return int(process.pid)
        return None

    def end(self) -> None:
        """Let no other driver follow the one that has ended. Raises AssertionError."""
        self.kubectl.run("delete", "deployment", "--all", "--cascade=foreground", timeout_s=_GONE_S)

    def left_over(self) -> list[str]:
        return self.cluster.left_over()


@contextmanager
def pods(folder: Path, *, restarts: bool = True) -> Iterator[Pods]:
    """Run the application on nodes of its own; everything ends with the block.

    With `restarts`, failed batches are retried. Raises Unavailable.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    for name in _FOLDERS:
        (folder / name).mkdir()
        # The image has a user of its own.
        (folder / name).chmod(0o777)
    shutil.copy(APP, folder)
    (folder / "log4j2.properties").write_text(LOG4J)
    stateful = STATEFUL_AT["kubernetes"]
    with ExitStack() as closing:
        scratch = closing.enter_context(folder_of_this_run())
        image = Images(scratch / "images").elastic(build_wheel(scratch / "wheel", INSTALLED))
        cluster = closing.enter_context(Cluster(scratch / "cluster"))
        for _ in range(_NODES):
            cluster.add_node(images=[image])
        cluster.kubectl.run("create", "namespace", NAMESPACE)
        kubectl = cluster.kubectl.within(NAMESPACE)
        kubectl.apply(shared(folder, "chaos", _CLAIM))
        values = folder / "values.yaml"
        values.write_text(yaml.safe_dump(_values(folder, RESTARTS if restarts else NO_RESTARTS)))
        kubectl.apply(render(values))
        feeder = Feeder(folder / "incoming")
        closing.callback(feeder.stop)
        made = Pods(
            folder=folder,
            feeder=feeder,
            tail=Tail(folder / "output", folder / "storage" / INTO_FILES, stateful),
            stateful=stateful,
            cluster=cluster,
            kubectl=kubectl,
            closing=closing,
        )
        feeder.start()
        made.calm()
        yield made


def _values(folder: Path, restarts: dict[str, str]) -> dict[str, Any]:
    """Return the values of the chart."""
    storage = folder / "storage"
    conf = {
        **CONF,
        **ADAPTIVE,
        **restarts,
        "spark.driver.extraJavaOptions": f"{SMALL_JVM} -Dlog4j2.configurationFile={folder}/log4j2.properties",
        "spark.executor.extraJavaOptions": SMALL_JVM,
        "spark.elastic.journal.dir": str(folder / "journal"),
        "spark.elastic.savepointDir": str(storage / "savepoints"),
        "spark.elastic.savepoint.keep": "3",
        "spark.kubernetes.allocation.batch.delay": "200ms",
        "spark.chaos.queries": ",".join((INTO_FILES, *STATEFUL_AT["kubernetes"])),
    }
    small = {"cores": 1, "cpu": "200m"}
    places = (folder / "incoming", storage / "checkpoints", folder / "output", storage / INTO_FILES)
    program = {"file": f"local://{folder / APP.name}", "arguments": [str(place) for place in places]}
    repository, tag = ELASTIC_IMAGE.rsplit(":", 1)
    return {
        "mode": "adaptive",
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "application": program,
        "driver": {**small, "memory": "1g", "memoryOverhead": "512m"},
        "executors": {**small, "memory": "640m", "memoryOverhead": "384m", "min": MOST, "max": MOST},
        "checkpoints": {"claim": _CLAIM, "path": str(folder)},
        "sparkConf": {
            key: value for key, value in conf.items() if key not in _NOT_HERE and not key.startswith(_NEITHER)
        },
    }
