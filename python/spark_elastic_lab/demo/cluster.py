"""A real Spark Standalone cluster of local processes, from the installed pyspark."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from spark_elastic.installation import pyspark_home
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure

if TYPE_CHECKING:
    from typing_extensions import Self


_HOST = "127.0.0.1"
_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 30.0
# Time (s) that a restarted master waits for workers and applications that have disappeared.
_RECOVERY_S = 10
# Spark's default, PWR, exists on Linux only; URG is free in a JVM everywhere.
_DECOMMISSION_SIGNAL = "PWR" if hasattr(signal, "SIGPWR") else "URG"
# Spark's home has no folder of this name.
_NO_CONF = "no-conf"
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""JVM options for a fast start on few cores: a small collector and only the quick compiler.

With that compiler alone, the code cache defaults to 48 MB. A driver with a few queries fills that within
minutes, and then the JVM stops compiling.
"""
CONSOLE_LOG4J = """\
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""
"""Log4j settings that send all logging to standard error; they leave the level open."""
_LOG4J = f"""\
{CONSOLE_LOG4J}rootLogger.level = info
# What is said for every task, broadcast and batch would bury the rest.
logger.jetty.name = org.sparkproject.jetty
logger.jetty.level = warn
logger.sql.name = org.apache.spark.sql
logger.sql.level = warn
logger.elastic.name = org.apache.spark.sql.elastic
logger.elastic.level = info
logger.storage.name = org.apache.spark.storage
logger.storage.level = warn
logger.scheduler.name = org.apache.spark.scheduler
logger.scheduler.level = warn
logger.context.name = org.apache.spark.SparkContext
logger.context.level = warn
logger.parquet.name = org.apache.parquet
logger.parquet.level = warn
logger.kafka.name = org.apache.kafka
logger.kafka.level = warn
"""


def spark_home() -> Path:
    """Return the folder of the installed pyspark. Raises ProcessFailure if there is none."""
    home = pyspark_home()
    if home is None:
        raise ProcessFailure("pyspark is not installed")
    return home


class Worker:
    """One worker process of the cluster and the executors it started; `host` is its address."""

    def __init__(self, name: str, process: LoggedProcess, host: str = _HOST) -> None:
        self.name = name
        self.process = process
        self.host = host


class Cluster:
    """A master and workers at `host`, on ports chosen by the system; a context manager that cleans up.

    All folders are under `folder`. The user's own Spark settings (SPARK_* variables, spark-defaults.conf) are
    ignored.
    """

    def __init__(self, folder: Path, host: str = _HOST) -> None:
        self._folder = folder
        self._host = host
        self._conf = folder / "conf"
        self._masters: list[LoggedProcess] = []
        self._processes: list[LoggedProcess] = []
        self._workers = 0
        self.master_url = ""
        self.master_ui = ""

    def __enter__(self) -> Self:
        try:
            self._start_master()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def add_worker(self, cores: int = 1, memory_mb: int = 768) -> Worker:
        """Start a worker with `cores` and `memory_mb` MiB for executors; return once it has registered."""
        worker = self.start_worker(cores, memory_mb)
        worker.process.wait_for_line(r"Successfully registered with master", _START_TIMEOUT_S)
        return worker

    def start_worker(
        self, cores: int = 1, memory_mb: int = 768, *, host: str | None = None, within: Sequence[str] = ()
    ) -> Worker:
        """Start a worker as `add_worker` does, but return at once.

        `within` is a prefix of its command line that isolates the worker; its address is then `host`.
        """
        host = host or self._host
        self._workers += 1
        name = f"worker-{self._workers}"
        command = [
            "org.apache.spark.deploy.worker.Worker",
            "--host",
            host,
            "--port",
            "0",
            "--webui-port",
            "0",
        ]
        command += [
            "--cores",
            str(cores),
            "--memory",
            f"{memory_mb}M",
            "--work-dir",
            str(self._folder / name),
        ]
        process = self._spark_class(name, [*command, self.master_url], host, within)
        return Worker(name, process, host)

    def kill_master(self) -> None:
        """Kill the master with SIGKILL; workers and executors continue without it."""
        self._masters[-1].kill()

    def start_master_again(self) -> None:
        """Start a master at the address of the killed one; it recovers its workers and applications."""
        self._start_master(self.master_url.rpartition(":")[2])

    def kill_worker(self, worker: Worker) -> None:
        """Kill a worker and its executors with SIGKILL, as when a machine dies."""
        worker.process.kill()

    def decommission_worker(self, worker: Worker) -> None:
        """Tell a worker to finish its tasks and accept no more; its process stays until it is removed."""
        worker.process.send(signal.Signals[f"SIG{_DECOMMISSION_SIGNAL}"])

    def remove_worker(self, worker: Worker) -> None:
        """Stop a worker and its executors in an orderly way."""
        worker.process.stop()

    def submit(
        self,
        application: Path,
        arguments: Sequence[str] = (),
        *,
        conf: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
        name: str = "driver",
        env: Mapping[str, str] | None = None,
    ) -> LoggedProcess:
        """Start spark-submit for a Python application; `conf` and `flags` override our defaults."""
        settings = {
            "spark.ui.port": "0",
            "spark.driver.host": self._host,
            "spark.driver.bindAddress": self._host,
            "spark.driver.memory": "1g",
            "spark.executor.cores": "1",
            "spark.executor.memory": "640m",
            "spark.executor.extraJavaOptions": SMALL_JVM,
            "spark.decommission.enabled": "true",
            "spark.ui.showConsoleProgress": "false",
            **(conf or {}),
        }
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", self.master_url]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        at = {"SPARK_LOCAL_IP": self._host}
        return self._start(name, [*command, *flags, str(application), *arguments], {**at, **(env or {})})

    def stop(self) -> None:
        """Stop every process that this cluster started, the newest first; safe to call twice."""
        for process in reversed(self._processes):
            process.stop()

    def left_over(self) -> list[str]:
        """Name the processes that still run, or whose children do, 30 s after `stop`."""
        return [process.name for process in self._processes if not process.wait_until_gone(_END_TIMEOUT_S)]

    @staticmethod
    def local_job(name: str, command: Sequence[str], folder: Path) -> LoggedProcess:
        """Start a command with its own local Spark, without the user's settings; it writes to `folder`."""
        env = isolated_environment(folder / "conf", folder / "local")
        return LoggedProcess(name, command, env=env, log=folder / f"{name}.log", cwd=folder)

    def _start_master(self, port: str = "0") -> None:
        self._conf.mkdir(parents=True, exist_ok=True)
        (self._conf / "log4j2.properties").write_text(_LOG4J)
        command = ["org.apache.spark.deploy.master.Master", "--host", self._host, "--port", port]
        command += ["--webui-port", "0"]
        name = f"master-{len(self._masters) + 1}" if self._masters else "master"
        master = self._spark_class(name, command, self._host)
        self._masters.append(master)
        self.master_url = master.wait_for_line(r"Starting Spark master at (spark://\S+)", _START_TIMEOUT_S)[1]
        self.master_ui = master.wait_for_line(
            r"MasterWebUI to \S+, and started at (http://\S+)", _START_TIMEOUT_S
        )[1]

    def _spark_class(
        self, name: str, arguments: Sequence[str], host: str, within: Sequence[str] = ()
    ) -> LoggedProcess:
        options = f"{SMALL_JVM} -Dspark.decommission.enabled=true -Dspark.master.rest.enabled=false"
        options += f" -Dspark.worker.decommission.signal={_DECOMMISSION_SIGNAL}"
        options += f" -Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryTimeout={_RECOVERY_S}s"
        options += f" -Dspark.deploy.recoveryDirectory={self._folder / 'recovery'}"
        env = {"SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": options}
        return self._start(name, [*within, str(spark_home() / "bin" / "spark-class"), *arguments], env)

    def _start(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> LoggedProcess:
        environment = {**isolated_environment(self._conf, self._folder / "local"), **env}
        log = self._folder / f"{name}.log"
        process = LoggedProcess(name, command, env=environment, log=log, cwd=self._folder)
        self._processes.append(process)
        return process


def isolated_environment(conf: Path, local: Path) -> dict[str, str]:
    """Return our environment without the user's Spark settings: `conf` holds settings, `local` scratch files.

    A property names Log4j's settings. If `conf` has no other files, it stays off the class path, as JVMs with
    equal class paths can share an archive of classes.
    """
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))
    }
    # A killed JVM leaves its temporary files behind, such as native libraries.
    temporary = local / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    options = [inherited.get("JDK_JAVA_OPTIONS", ""), f'"-Djava.io.tmpdir={temporary}"']
    log4j = conf / "log4j2.properties"
    if log4j.exists():
        options.append(f'"-Dlog4j2.configurationFile={log4j.as_uri()}"')
    others = conf.exists() and any(file != log4j for file in conf.iterdir())
    return {
        **inherited,
        "JDK_JAVA_OPTIONS": " ".join(options).strip(),
        "SPARK_HOME": str(spark_home()),
        "SPARK_CONF_DIR": str(conf if others else spark_home() / _NO_CONF),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_LOCAL_DIRS": str(local),
        "PYSPARK_PYTHON": sys.executable,
    }
