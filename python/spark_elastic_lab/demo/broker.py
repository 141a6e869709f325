"""A real Kafka broker in one local process, and a producer for it.

They are Kafka's own jars, in KRaft mode and with Kafka's command line, so that tests and demo need neither a
container nor a Kafka client for Python.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from spark_elastic.installation import spark_in
from spark_elastic_lab.demo.cluster import spark_home
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic_tools.java import find_java
from spark_elastic_tools.maven import FetchError, fetch

if TYPE_CHECKING:
    from typing_extensions import Self


# ---- Ports on loopback that stay reserved for a server while it is down.


_HOST = "127.0.0.1"


class ReservedPorts:
    """Ports chosen by the system; on Linux, no process that asks for a free port gets them until `close`.

    They are bound but not listened on. A server that sets SO_REUSEADDR, as Java's servers do, can bind them
    too.
    """

    def __init__(self, count: int) -> None:
        self._sockets = [_bound() for _ in range(count)]
        self.numbers = tuple(int(bound.getsockname()[1]) for bound in self._sockets)
        if sys.platform != "linux":
            # Elsewhere, no other socket can bind a bound port, whatever its options.
            self.close()

    def close(self) -> None:
        """Release the ports; calling it twice is safe."""
        for bound in self._sockets:
            bound.close()


def _bound() -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((_HOST, 0))
    return bound


# ---- The jars of a Kafka broker and of Spark's Kafka source: neither Spark nor this package ships them.


_BROKER = "org.apache.kafka:kafka_2.13:4.2.0"
# Parts of Kafka's own distribution that the broker does not depend on: its command line and its log backend.
_BESIDE_BROKER = ("org.apache.kafka:kafka-tools:4.2.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3")
# The source's dependencies that Spark does not ship, in the versions it declares.
_BESIDE_SOURCE = ("org.apache.kafka:kafka-clients:3.9.1", "org.apache.commons:commons-pool2:2.12.1")
_BESIDE_SOURCE_BEFORE_4 = ("org.apache.kafka:kafka-clients:3.4.1", "org.apache.commons:commons-pool2:2.11.1")


def broker_jars() -> list[Path]:
    """Return the jars of a broker and its tools; download those that are missing. Raises FetchError."""
    return [*fetch(_BROKER, transitive=True), *fetch(*_BESIDE_BROKER, transitive=False)]


def source_jars(token_provider: Path | None = None) -> list[Path]:
    """Return the jars that an application needs to read from Kafka; download those that are missing.

    `token_provider` replaces spark-token-provider-kafka where that cannot be fetched. Raises FetchError.
    """
    found = spark_in(spark_home())
    if found is None:
        raise FetchError(f"{spark_home()} has no jars/spark-core_*.jar, so its Spark and Scala are not known")
    spark, scala = found.version, found.scala
    beside = _BESIDE_SOURCE_BEFORE_4 if spark.startswith("3.") else _BESIDE_SOURCE
    jars = fetch(f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}", *beside, transitive=False)
    token_provider_name = f"org.apache.spark:spark-token-provider-kafka-0-10_{scala}:{spark}"
    try:
        provider = fetch(token_provider_name, transitive=False)
    except FetchError:
        if token_provider is None:
            raise
        provider = [token_provider]
    return [*jars, *provider]


_START_TIMEOUT_S = 120.0
_TOOL_TIMEOUT_S = 60.0
_SEND_TIMEOUT_MS = 600_000
_STOP_S = 30.0
_END_TIMEOUT_S = 30.0
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOG4J = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
# All settings of all parts, at each start.
logger.config.name = org.apache.kafka.common.config
logger.config.level = warn
"""
_SERVER = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
"""


class Broker:
    """A broker that is its own controller, on loopback; a context manager that leaves only its logs.

    The system chooses its ports. The ports and the data, below `folder`, stay the same while it is stopped
    and started again. Raises FetchError or NoJavaError if it cannot be set up, ProcessFailure if a request
    fails.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._settings = folder / "server.properties"
        self._log4j = folder / "log4j2.properties"
        self._java = find_java()
        self._class_path = os.pathsep.join(map(str, broker_jars()))
        self._processes: list[LoggedProcess] = []
        self._producers: list[Producer] = []
        self._server: LoggedProcess | None = None
        self._ports = ReservedPorts(2)
        self.servers = f"127.0.0.1:{self._ports.numbers[0]}"

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Format the data folder and start the broker; the caller must also call `close`."""
        self._prepare()
        self.start()

    def start(self) -> None:
        """Start the broker with its existing data; return once it serves requests."""
        self._server = self._java_process("broker", "kafka.Kafka", [str(self._settings)])
        self._server.wait_for_line("Kafka Server started", _START_TIMEOUT_S)

    def stop(self) -> None:
        """Stop the broker in an orderly way; it keeps its ports and its data."""
        if self._server is not None:
            self._server.stop(_STOP_S)

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create a topic with this number of partitions."""
        self._topics("--create", "--topic", topic, "--partitions", str(partitions))

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with its records."""
        self._topics("--delete", "--topic", topic)

    def set_partitions(self, topic: str, partitions: int) -> None:
        """Increase a topic's partitions to this number."""
        self._topics("--alter", "--topic", topic, "--partitions", str(partitions))

    def producer(self, topic: str) -> Producer:
        """Start a producer that retries while the broker is stopped, and notices added partitions."""
        arguments = ["--bootstrap-server", self.servers, "--topic", topic]
        arguments += ["--reader-property", "parse.key=true"]
        # By default, it gives up after three tries and looks for new partitions every five minutes.
        arguments += ["--message-send-max-retries", str(2**31 - 1), "--metadata-expiry-ms", "1000"]
        arguments += ["--command-property", f"delivery.timeout.ms={_SEND_TIMEOUT_MS}"]
        # Time (ms) that records wait to be batched; by default a second.
        arguments += ["--timeout", "10"]
        process = self._java_process(
            f"producer-{topic}", "org.apache.kafka.tools.ConsoleProducer", arguments, stdin=subprocess.PIPE
        )
        producer = Producer(process)
        self._producers.append(producer)
        return producer

    def close(self) -> None:
        """End all processes and remove the data; calling it twice is safe."""
        for producer in self._producers:
            producer.abandon()
        for process in reversed(self._processes):
            process.kill()
        self._ports.close()
        shutil.rmtree(self._data, ignore_errors=True)

    def left_over(self) -> list[str]:
        """Name the processes and files that remain 30 s after `close`."""
        names = [process.name for process in self._processes if not process.wait_until_gone(_END_TIMEOUT_S)]
        return [*names, *([str(self._data)] if self._data.exists() else [])]

    def _prepare(self) -> None:
        self._folder.mkdir(parents=True)
        self._log4j.write_text(_LOG4J)
        port, controller = self._ports.numbers
        self._settings.write_text(_SERVER.format(port=port, controller=controller, data=self._data))
        # An id in Kafka's format; a leading dash would be parsed as an option.
        cluster = base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")
        self._run("format", "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings))

    def _topics(self, *arguments: str) -> None:
        self._run(
            "topics", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.servers, *arguments
        )

    def _run(self, name: str, main_class: str, *arguments: str) -> None:
        tool = self._java_process(name, main_class, arguments)
        code = tool.wait(_TOOL_TIMEOUT_S)
        tool.stop()
        if code != 0:
            ended = f"has not ended in {_TOOL_TIMEOUT_S:g} s" if code is None else f"ended with code {code}"
            raise ProcessFailure(f"{main_class} {' '.join(arguments)} {ended}\n{tool.log_tail()}")

    def _java_process(
        self, name: str, main_class: str, arguments: Sequence[str], stdin: int = subprocess.DEVNULL
    ) -> LoggedProcess:
        log = self._folder / f"{len(self._processes):02d}-{name}.log"
        options = [*_JVM, f"-Dlog4j2.configurationFile={self._log4j}", "-cp", self._class_path]
        command = [self._java, *options, main_class, *arguments]
        process = LoggedProcess(name, command, env=os.environ, log=log, cwd=self._folder, stdin=stdin)
        self._processes.append(process)
        return process


class Producer:
    """Kafka's console producer: it sends its input in the background, in order, each record once."""

    def __init__(self, process: LoggedProcess) -> None:
        self._process = process

    def send(self, records: Iterable[tuple[str, str]]) -> None:
        """Send pairs of key and value, without tabs or line feeds. Raises ProcessFailure if it has ended."""
        assert self._process.stdin is not None
        lines = "".join(f"{key}\t{value}\n" for key, value in records)
        try:
            self._process.stdin.write(lines.encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ProcessFailure(f"{self._process.name} has ended\n{self._process.log_tail()}") from None

    def close(self) -> None:
        """Wait until all records are in the topic, then end. Raises ProcessFailure if a record was lost."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(_TOOL_TIMEOUT_S)
        self._process.stop()
        # It only logs each record that it gives up on, and then exits with code 0.
        lost = re.search(".* ERROR .*", self._process.log.read_text(errors="replace"))
        if code != 0 or lost:
            said = lost[0] if lost else self._process.log_tail()
            raise ProcessFailure(f"{self._process.name} did not send all\n{said}")

    def abandon(self) -> None:
        """End at once and drop unsent records; after `close`, this does nothing."""
        self._process.stop(grace_s=0)
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
