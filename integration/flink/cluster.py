"""A real Flink cluster of local processes that runs one job in reactive mode, from Maven Central's jars."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from integration.flink.jars import cluster_class_path
from integration.jdk_tools import compile_java
from spark_elastic_lab.demo.cluster import SMALL_JVM
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic_tools.java import find_java

if TYPE_CHECKING:
    from typing_extensions import Self

_HOST = "127.0.0.1"
# Generous, as they only bound a hang and a busy machine is slow.
_START_TIMEOUT_S = 120.0
_END_TIMEOUT_S = 60.0
_POLL_S = 0.5
_JOB_MANAGER = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
# What Flink's own scripts open on Java 17, as far as a job without Python and Kerberos needs it.
_OPENED = (
    *("java.lang", "java.lang.reflect", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.text"),
    *("java.time", "java.util", "java.util.concurrent", "java.util.concurrent.atomic"),
    "java.util.concurrent.locks",
)
_JVM = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
    "--add-exports=java.management/sun.management=ALL-UNNAMED",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
    "-Dorg.slf4j.simpleLogger.showShortLogName=true",
)
# Reactive mode as tuned for the shortest gaps: no wait but for what is really missing.
_CONF = {
    "scheduler-mode": "reactive",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "0 ms",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 ms",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": str(2**31 - 1),
    "restart-strategy.fixed-delay.delay": "0 ms",
    # A process that was killed refuses the next heartbeat; a busy one has time to answer.
    "heartbeat.interval": "200",
    "heartbeat.rpc-failure-threshold": "1",
    "heartbeat.timeout": "10000",
    "state.backend.type": "rocksdb",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.min-pause": "0 ms",
    "execution.checkpointing.tolerable-failed-checkpoints": str(2**31 - 1),
    # A TaskManager that stays has its part of the last checkpoint on its own disk.
    "execution.checkpointing.local-backup.enabled": "true",
    "execution.state-recovery.from-local": "true",
    # A moved state keeps the files of its stores, where Flink can; by default it copies each row.
    "state.backend.rocksdb.use-ingest-db-restore-mode": "true",
    "state.backend.rocksdb.rescaling.use-delete-files-in-range": "true",
    "jobmanager.rpc.address": _HOST,
    "jobmanager.rpc.port": "0",
    "jobmanager.bind-host": _HOST,
    "rest.address": _HOST,
    "rest.bind-address": _HOST,
    "rest.port": "0",
    "rest.bind-port": "0",
    "taskmanager.host": _HOST,
    "taskmanager.bind-host": _HOST,
    "taskmanager.numberOfTaskSlots": "1",
    # The processor of a slot; Flink only compares it.
    "taskmanager.cpu.cores": "1",
    "taskmanager.memory.task.heap.size": "384m",
    "taskmanager.memory.task.off-heap.size": "0m",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.network.min": "64m",
    "taskmanager.memory.network.max": "64m",
    "taskmanager.memory.managed.size": "256m",
    "taskmanager.memory.jvm-metaspace.size": "128m",
    "taskmanager.memory.jvm-overhead.min": "128m",
    "taskmanager.memory.jvm-overhead.max": "128m",
}
_TASK_MANAGER_MEMORY = ("-Xmx512m", "-XX:MaxDirectMemorySize=192m")
_JOB_MANAGER_MEMORY = ("-Xmx512m",)


class FlinkCluster:
    """A JobManager that runs one job, and TaskManagers with one slot; a context manager that cleans up.

    The job is a Java program without a package; it gets `arguments`, and may use tables and files if it is
    `sql`. `conf` overrides the settings here. All folders are under `folder`, all ports are chosen by the
    system.
    """

    def __init__(
        self,
        folder: Path,
        program: Path,
        arguments: Sequence[str],
        conf: Mapping[str, str] | None = None,
        *,
        sql: bool = False,
    ) -> None:
        self._folder = folder
        self._program = program
        self._arguments = arguments
        self._conf = {
            **_CONF,
            "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
            **(conf or {}),
        }
        self._sql = sql
        self._class_path = ""
        self._processes: list[LoggedProcess] = []
        self._workers = 0
        self._rest = ""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def job_manager(self) -> LoggedProcess:
        """The process that runs the job."""
        return self._processes[0]

    def add_worker(self) -> LoggedProcess:
        """Start a TaskManager; return once it has registered. Raises ProcessFailure."""
        self._workers += 1
        process = self._java(f"task-manager-{self._workers}", _TASK_MANAGER_MEMORY, _TASK_MANAGER, [])
        process.wait_for_line("Successful registration at resource manager", _START_TIMEOUT_S)
        return process

    def kill_worker(self, worker: LoggedProcess) -> None:
        """Kill a TaskManager with SIGKILL, as when a machine dies."""
        worker.kill()

    def stop_worker(self, worker: LoggedProcess) -> None:
        """Tell a TaskManager to end (SIGTERM), and wait until it has. Raises ProcessFailure."""
        worker.send(signal.SIGTERM)
        if worker.wait(_END_TIMEOUT_S) is None:
            raise ProcessFailure(f"{worker.name} does not end\n{worker.log_tail()}")

    def job(self, below: str = "") -> dict[str, Any]:
        """Return what the REST API says of the job, or of a path below it."""
        return _get(self._job_address() + below)

    def drain(self, timeout_s: float) -> None:
        """Tell the job to end as if its input had ended, with all windows closed; wait until it has.

        Raises ProcessFailure if it does not in time, or fails, OSError if the JobManager has gone.
        """
        address = self._job_address()
        order = {"drain": True, "targetDirectory": (self._folder / "savepoint").as_uri()}
        deadline = time.monotonic() + timeout_s
        number, result = "", None
        while "location" not in (result or {}) and time.monotonic() < deadline:
            if result or not number:
                # The first one, or again: an order that comes while tasks start is given up.
                number = _ask(f"{address}/stop", json.dumps(order).encode())["request-id"]
            # The JobManager ends once the result has been asked for.
            result = _get(f"{address}/savepoints/{number}")["operation"]
            time.sleep(_POLL_S)
        if self.job_manager.wait(_END_TIMEOUT_S) != 0:
            raise ProcessFailure(f"the job does not end well\n{self.job_manager.log_tail()}")

    def stop(self) -> None:
        """Stop every process that this cluster started, the newest first; safe to call twice."""
        for process in reversed(self._processes):
            process.stop()

    def _start(self) -> None:
        classes = self._folder / "classes"
        for folder in (classes, self._folder / "conf"):
            folder.mkdir(parents=True, exist_ok=True)
        jars = cluster_class_path(self._sql)
        compile_java(self._program, classes, jars)
        self._class_path = os.pathsep.join([str(classes), jars])
        self._write_conf()
        arguments = ["--job-classname", self._program.stem, *self._arguments]
        process = self._java("job-manager", _JOB_MANAGER_MEMORY, _JOB_MANAGER, arguments)
        address = rf"Actor system started at \S+@{_HOST}:(\d+)"
        self._conf["jobmanager.rpc.port"] = process.wait_for_line(address, _START_TIMEOUT_S)[1]
        self._rest = process.wait_for_line(r"Rest endpoint listening at (\S+:\d+)", _START_TIMEOUT_S)[1]
        # A program that fails before says why, while no TaskManager would ever find the JobManager.
        process.wait_for_line("Received job submission", _START_TIMEOUT_S)
        self._write_conf()

    def _job_address(self) -> str:
        (job,) = _get(f"http://{self._rest}/jobs")["jobs"]
        return f"http://{self._rest}/jobs/{job['id']}"

    def _write_conf(self) -> None:
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in self._conf.items()]
        (self._folder / "conf" / "config.yaml").write_text("".join(lines), encoding="utf-8")

    def _java(self, name: str, memory: Sequence[str], main: str, arguments: Sequence[str]) -> LoggedProcess:
        scratch = self._folder / name
        scratch.mkdir()
        command = [find_java(), *SMALL_JVM.split(), *memory, *_JVM, f"-Djava.io.tmpdir={scratch}"]
        command += ["-cp", self._class_path, main, "--configDir", str(self._folder / "conf")]
        command += [f"-Dio.tmp.dirs={scratch}", *arguments]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FLINK_")}
        log = self._folder / f"{name}.log"
        process = LoggedProcess(name, command, env=environment, log=log, cwd=scratch)
        self._processes.append(process)
        return process


def _get(address: str) -> dict[str, Any]:
    return _ask(address, None)


def _ask(address: str, order: bytes | None) -> dict[str, Any]:
    request = urllib.request.Request(address, order, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=_START_TIMEOUT_S) as answer:
        found: dict[str, Any] = json.load(answer)
    return found
