"""A PySpark driver in this process, whose JVM serves one context after another and then ends."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from integration.class_archive import of_drivers
from integration.jdk_tools import JCMD, tool_output
from spark_elastic.jar import jar_path
from spark_elastic_lab.demo.cluster import SMALL_JVM, isolated_environment, spark_home

PLUGIN = {
    "spark.plugins": "org.apache.spark.elastic.ElasticPlugin",
    # On a busy machine a policy process may take longer to start than a user's query would wait.
    "spark.elastic.startTimeout": "1min",
}
LOG4J = """\
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss.SSS}} %p %c{{1}} [%t]: %m%n%ex
"""


def policies_of(jvm: int) -> list[psutil.Process]:
    """Return the running children of a driver's JVM (its process id) that are policy processes."""
    found = []
    for child in psutil.Process(jvm).children():
        with suppress(psutil.NoSuchProcess):
            if "spark_elastic.runtime" in child.cmdline():
                found.append(child)
    return found


def listening(pid: int) -> set[int]:
    """Return the ports that a process listens on. Raises NoSuchProcess."""
    connections = psutil.Process(pid).net_connections("tcp")
    return {c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN}


def is_in(jvm: Any, method: str) -> bool:
    """Return whether a thread is in a method, given as in a stack trace, or in a method called from there."""
    as_text = jvm.scala.runtime.ScalaRunTime.stringOf
    stacks = jvm.java.lang.Thread.getAllStackTraces().values()
    return any(f"{method}(" in as_text(stack) for stack in stacks)


def histogram(pid: int) -> Iterator[list[str]]:
    """Return number, instances, bytes and name of each reachable class, after a garbage collection."""
    lines = map(str.split, tool_output(JCMD, str(pid), "GC.class_histogram").splitlines())
    return (words for words in lines if words and words[0].endswith(":") and len(words) > 3)


class Driver:
    """The JVM of a PySpark application; `conf` of a context has the settings its application would be given.

    `jar` is the shim's jar, by default that of this package; `options` are additional options of the JVM.
    """

    def __init__(
        self, folder: Path, class_path: Sequence[Path] = (), jar: Path | None = None, options: str = ""
    ) -> None:
        self.folder = folder
        self._options = options
        self._class_path = (jar or jar_path(), *class_path)
        self.log = folder / "driver.log"
        self.output = folder / "output.log"
        self.temporary = folder / "tmp"
        self._gateway: Any = None

    @property
    def pid(self) -> int:
        return int(self._gateway.proc.pid)

    @property
    def jvm(self) -> Any:
        return self._gateway.jvm

    def said(self) -> list[str]:
        """Return the lines of the log."""
        return self.log.read_text(errors="replace").splitlines()

    def printed(self) -> str:
        """Return what the JVM has written to standard output and standard error."""
        return self.output.read_text(errors="replace")

    def ports(self) -> set[int]:
        """Return the ports that the JVM listens on."""
        return listening(self.pid)

    def threads(self) -> list[str]:
        """Return the names of the JVM's threads."""
        return [str(thread.getName()) for thread in self.jvm.java.lang.Thread.getAllStackTraces().keySet()]

    def living(self, name: str) -> int:
        """Return the number of reachable objects of a class, after a garbage collection."""
        return sum(int(words[1]) for words in histogram(self.pid) if words[3] == name)

    def living_by_class(self) -> Counter[str]:
        """Return the bytes of all reachable objects, by class, after a garbage collection."""
        return Counter({words[3]: int(words[2]) for words in histogram(self.pid)})

    @contextmanager
    def session(self, conf: Mapping[str, str]) -> Iterator[SparkSession]:
        """Start a session of a new context on local[2]."""
        # PySpark keeps its first gateway and accepts no other while it has one.
        SparkContext._gateway = SparkContext._jvm = None
        settings = SparkConf(loadDefaults=False).setAll(
            [
                ("spark.master", "local[2]"),
                ("spark.app.name", "integration"),
                ("spark.ui.enabled", "false"),
                ("spark.ui.port", "0"),
                ("spark.driver.host", "127.0.0.1"),
                ("spark.driver.bindAddress", "127.0.0.1"),
                ("spark.sql.warehouse.dir", str(self.folder / "warehouse")),
                *conf.items(),
            ]
        )
        context = SparkContext(conf=settings, gateway=self._gateway)
        spark = SparkSession(context)
        application = context.applicationId
        try:
            yield spark
        finally:
            spark.stop()
            # The workers of a local cluster can keep the folders of their executors nowhere else.
            shutil.rmtree(spark_home() / "work" / application, ignore_errors=True)

    def start(self) -> None:
        self.temporary.mkdir(parents=True)
        conf = self.folder / "conf"
        conf.mkdir()
        (conf / "log4j2.properties").write_text(LOG4J.format(log=self.log))
        options = f"{SMALL_JVM} {of_drivers()} -Djava.io.tmpdir={self.temporary} {self._options}"
        class_path = os.pathsep.join(map(str, self._class_path))
        arguments = ["--driver-class-path", class_path, "--driver-java-options", f"'{options}'"]
        kept, isolated = dict(os.environ), isolated_environment(conf, self.folder / "local")
        os.environ.clear()
        os.environ.update(isolated)
        os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*arguments, "--driver-memory 1g", "pyspark-shell"])
        try:
            with self.output.open("wb") as output:
                self._gateway = launch_gateway(  # type: ignore[no-untyped-call]  # PySpark's inner part
                    popen_kwargs={"stdout": output, "stderr": output}
                )
        finally:
            os.environ.clear()
            os.environ.update(kept)

    def stop(self) -> None:
        process = self._gateway.proc
        with suppress(Exception):  # a JVM that a test has killed cannot answer the shutdown
            self._gateway.shutdown()
        process.stdin.close()
        process.kill()
        process.wait()
        # PySpark keeps its last gateway otherwise.
        SparkContext._gateway = None
        SparkContext._jvm = None


@contextmanager
def driver(
    folder: Path, class_path: Sequence[Path] = (), jar: Path | None = None, options: str = ""
) -> Iterator[Driver]:
    """Start a driver without a context, with additional jars; its JVM ends with the block."""
    started = Driver(folder, class_path, jar, options)
    started.start()
    try:
        yield started
    finally:
        started.stop()
