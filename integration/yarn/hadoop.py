"""A real YARN of local processes: a ResourceManager, the web proxy of its applications, and NodeManagers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import psutil

from spark_elastic_lab.demo.broker import ReservedPorts
from spark_elastic_lab.demo.cluster import CONSOLE_LOG4J, SMALL_JVM, isolated_environment, spark_home
from spark_elastic_lab.demo.processes import LoggedProcess
from spark_elastic_tools.java import find_java
from spark_elastic_tools.maven import fetch

if TYPE_CHECKING:
    from typing_extensions import Self

_HOST = "127.0.0.1"
# The proxy has an address of its own, so that a client of the driver itself is not mistaken for it.
PROXY_HOST = "127.0.0.2"
_START_S = 120.0
_STOP_S = 30.0
_END_S = 5.0
_POLL_S = 0.05
_JVM = (
    *("-Xmx384m", *SMALL_JVM.split()),
    # The dependency injection of Hadoop 3.3's daemons defines classes by a method that newer Javas hide.
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
# The proxy signs certificates with it, and Hadoop's jars do not include it.
_BOUNCY_CASTLE = "org.bouncycastle:bcpkix-jdk18on:1.82"
_SERVER = "org.apache.hadoop.yarn.server"
_MEMORY_MB = 6144
_CORES = 8


def yarn_jars() -> list[Path]:
    """Return the jars of YARN's daemons beyond PySpark's own, downloading those that are missing."""
    (client,) = (spark_home() / "jars").glob("hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    daemons = fetch(f"org.apache.hadoop:hadoop-client-minicluster:{version}", transitive=False)
    return [*daemons, *fetch(_BOUNCY_CASTLE, transitive=True)]


class Yarn:
    """A YARN on loopback, on ports that the system chooses; a context manager that leaves no process.

    Every folder lies under `folder`. Raises FetchError or NoJavaError if a part is unavailable,
    ProcessFailure if YARN does not start.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._java = find_java()
        self._class_path = os.pathsep.join(map(str, [*yarn_jars(), spark_home() / "jars" / "*"]))
        self._processes: list[LoggedProcess] = []
        self._ports = ReservedPorts(6)
        self.conf = folder / "hadoop"
        self.proxy = f"http://{PROXY_HOST}:{self._ports.numbers[5]}"

    def __enter__(self) -> Self:
        try:
            self._write_settings()
            self._start("resourcemanager", "resourcemanager.ResourceManager", "Transitioned to active state")
            self._start("proxy", "webproxy.WebAppProxyServer", "Jetty bound to port|Started ServerConnector")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def add_node(self) -> LoggedProcess:
        """Start a NodeManager; return once it is registered."""
        name = f"nodemanager-{len(self._processes)}"
        local, logs = self._folder / name / "local", self._folder / name / "logs"
        own = {"yarn.nodemanager.local-dirs": str(local), "yarn.nodemanager.log-dirs": str(logs)}
        return self._start(name, "nodemanager.NodeManager", "Registered with ResourceManager", own)

    def stop(self) -> None:
        """End everything, containers too; calling it again does nothing."""
        for process in reversed(self._processes):
            process.stop(_STOP_S)
        # A NodeManager starts each container in a session of its own, and may have ended before it.
        for container in self._containers():
            with suppress(psutil.NoSuchProcess):
                container.kill()
        self._ports.close()

    def left_over(self) -> list[str]:
        """Return the names of processes that still run a moment after `stop`."""
        names = [process.name for process in self._processes if not process.wait_until_gone(_END_S)]
        deadline = time.monotonic() + _END_S
        while (containers := list(self._containers())) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return [*names, *(f"container {container.pid}" for container in containers)]

    def _containers(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if f"{self._folder}/nodemanager-" in process.cwd():
                    yield process

    def _start(self, name: str, main: str, ready: str, own: Mapping[str, str] | None = None) -> LoggedProcess:
        folder = self._folder / name
        folder.mkdir(parents=True)
        _write_xml(folder / "yarn-site.xml", {**self._settings(), **(own or {})})
        class_path = os.pathsep.join([str(folder), str(self.conf), self._class_path])
        command: Sequence[str] = [self._java, *_JVM, "-cp", class_path, f"{_SERVER}.{main}"]
        env = {
            **isolated_environment(self.conf, self._folder / "local"),
            # Containers use the Java of this variable.
            "JAVA_HOME": str(Path(self._java).resolve().parents[1]),
            "HADOOP_CONF_DIR": str(self.conf),
        }
        process = LoggedProcess(name, command, env=env, log=self._folder / f"{name}.log", cwd=folder)
        self._processes.append(process)
        process.wait_for_line(ready, _START_S)
        return process

    def _write_settings(self) -> None:
        self.conf.mkdir(parents=True)
        (self.conf / "log4j2.properties").write_text(f"{CONSOLE_LOG4J}rootLogger.level = info\n")
        core = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(self._folder / "tmp")}
        _write_xml(self.conf / "core-site.xml", core)
        _write_xml(self.conf / "yarn-site.xml", self._settings())
        queue = "yarn.scheduler.capacity.root"
        capacity = {
            f"{queue}.queues": "default",
            f"{queue}.default.capacity": "100",
            "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
        }
        _write_xml(self.conf / "capacity-scheduler.xml", capacity)

    def _settings(self) -> dict[str, str]:
        manager = "yarn.resourcemanager"
        node = "yarn.nodemanager"
        roles = ("", "scheduler.", "resource-tracker.", "admin.", "webapp.")
        ports = zip(roles, self._ports.numbers, strict=False)
        return {
            f"{manager}.hostname": _HOST,
            **{f"{manager}.{role}address": f"{_HOST}:{port}" for role, port in ports},
            "yarn.web-proxy.address": self.proxy.removeprefix("http://"),
            f"{manager}.am.max-attempts": "1",
            f"{manager}.nodemanagers.heartbeat-interval-ms": "200",
            "yarn.scheduler.minimum-allocation-mb": "64",
            **{f"{node}.{role}": f"{_HOST}:0" for role in ("address", "localizer.address", "webapp.address")},
            f"{node}.hostname": _HOST,
            f"{node}.resource.memory-mb": str(_MEMORY_MB),
            f"{node}.resource.cpu-vcores": str(_CORES),
            f"{node}.pmem-check-enabled": "false",
            f"{node}.vmem-check-enabled": "false",
            f"{node}.disk-health-checker.enable": "false",
        }


def _write_xml(file: Path, settings: Mapping[str, str]) -> None:
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    ]
    file.write_text("\n".join(["<configuration>", *lines, "</configuration>", ""]))
