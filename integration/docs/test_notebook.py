"""Tests what "Getting started" tells users of notebooks, in a kernel as Jupyter starts it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import getsource
from queue import Empty
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest
from attrs import frozen
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from integration.docs.machine import FIRST, Machine, shown, shown_python
from integration.streaming import asleep
from integration.streaming.driver import policies_of
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic_lab.demo.processes import group_lives

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

EXPORT = 'export PYSPARK_SUBMIT_ARGS="$(spark-elastic conf --mode reactive) pyspark-shell"'

PLAIN_SESSION = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
"""
START = """\
from pathlib import Path
from tempfile import mkdtemp

folder = Path(mkdtemp(dir="."))
rows = spark.readStream.text(str(folder.resolve()))
query = rows.groupBy("value").count().writeStream.format("noop").outputMode("update").start()
"""
# A separate cell that checks the query of the cell before. It runs no job: an interrupt cancels all jobs, and
# a query whose job is cancelled fails, with or without the plugin.
LOOK = """\
import time
from uuid import uuid4

def batches():
    return [batch for batch in query.recentProgress if batch["numInputRows"]]

before = len(batches())
written = folder / f".{uuid4()}"
written.write_text("a row")
written.rename(folder / f"{uuid4()}")
while len(batches()) == before:
    if not query.isActive:
        raise SystemExit(f"the query has ended: {query.exception()}")
    time.sleep(0.2)
print(batches()[-1]["stateOperators"][0]["numShufflePartitions"])
"""
ASLEEP = "asleep"
AWAIT = f"""\
{getsource(asleep)}
import threading
from pathlib import Path

once = [threading.get_ident(), Path("{ASLEEP}").touch]
threading.Thread(target=once_asleep, args=once, daemon=True).start()
query.awaitTermination()
"""
JVM = "print(spark.sparkContext._gateway.proc.pid)"


@frozen
class Ran:
    """The result of a cell: the name of the exception it ended with, if any, and its output."""

    error: str | None
    printed: str


class Notebook:
    """A notebook, whose cells are run by a kernel."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self._client = client

    @property
    def group(self) -> int:
        """The process group of the kernel and its child processes."""
        provisioner: Any = self.manager.provisioner
        return int(provisioner.pgid)

    def send(self, cell: str) -> str:
        """Let the kernel run a cell, without waiting for it."""
        return str(self._client.execute(cell))

    def ended(self, sent: str) -> Ran:
        """Wait for the end of a cell that was sent."""
        printed: list[str] = []
        while True:
            try:
                message = self._client.get_iopub_msg(timeout=PATIENCE_S)
            except Empty:
                raise AssertionError(f"the cell still runs after {PATIENCE_S:g} s: {printed}") from None
            if message["parent_header"].get("msg_id") != sent:
                continue
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                printed.append(content["text"])
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
        # A client that waits for a slow kernel asks more than once whether it is ready.
        while (reply := self._client.get_shell_msg(timeout=PATIENCE_S))["parent_header"]["msg_id"] != sent:
            pass
        return Ran(reply["content"].get("ename"), "".join(printed))

    def run(self, cell: str) -> str:
        """Run a cell that must not fail, and return its output."""
        ran = self.ended(self.send(cell))
        assert ran.error is None, ran
        return ran.printed

    def restart(self) -> None:
        self.manager.restart_kernel()
        self._client.wait_for_ready(timeout=PATIENCE_S)

    def jvm(self) -> int:
        """The process id of the driver's JVM."""
        return int(self.run(JVM))


@contextmanager
def opened(machine: Machine, environment: Mapping[str, str] | None = None) -> Iterator[Notebook]:
    """Open a notebook on a machine; its kernel ends with the block, with its child processes."""
    env = {**machine.environment, "IPYTHONDIR": str(machine.folder / "ipython"), **(environment or {})}
    # Ports would be chosen before the kernel binds them; sockets need a short path.
    with TemporaryDirectory(prefix="kernel-") as sockets:
        file = str(machine.folder / "kernel.json")
        manager = KernelManager(connection_file=file, transport="ipc", ip=f"{sockets}/socket")
        manager.start_kernel(env=env, cwd=str(machine.folder))
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=PATIENCE_S)
            yield Notebook(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            manager.cleanup_resources()


def partitions(notebook: Notebook) -> int:
    """Start the query, and return in another cell the number of partitions of its state."""
    notebook.run(START)
    return int(notebook.run(LOOK))


def policy_of(notebook: Notebook) -> psutil.Process:
    (policy,) = policies_of(notebook.jvm())
    return policy


def interrupted(machine: Machine, notebook: Notebook) -> tuple[Ran, str, int]:
    """Interrupt a cell that waits for the query; return its end, and how the query continues."""
    waits = machine.folder / ASLEEP
    waits.unlink(missing_ok=True)
    notebook.run(LOOK)
    sent = notebook.send(AWAIT)
    eventually(waits.exists, "the cell waits for the query")
    notebook.manager.interrupt_kernel()
    ended = notebook.ended(sent)
    return ended, notebook.run("print(query.isActive)").strip(), int(notebook.run(LOOK))


def shut_down(notebook: Notebook) -> None:
    notebook.manager.shutdown_kernel()


def killed(notebook: Notebook) -> None:
    """Kill the kernel alone, as the system does when memory is short."""
    psutil.Process(notebook.group).kill()


@pytest.mark.matrix
def test_a_session_without_the_plugin_is_refused_and_a_restart_helps(machine: Machine) -> None:
    with opened(machine) as notebook:
        notebook.run(PLAIN_SESSION)
        refused = notebook.ended(notebook.send(shown_python()))
        assert refused.error == "ConflictError"
        notebook.restart()
        notebook.run(shown_python())
        assert partitions(notebook) == FIRST


def test_the_environment_of_the_server_turns_it_on(machine: Machine) -> None:
    done = machine.run(f'{shown(EXPORT)} && printf %s "$PYSPARK_SUBMIT_ARGS"')
    assert done.returncode == 0, done.stderr
    with opened(machine, {"PYSPARK_SUBMIT_ARGS": done.stdout}) as notebook:
        notebook.run(PLAIN_SESSION)
        assert partitions(notebook) == FIRST


@pytest.mark.matrix
def test_an_interrupt_is_that_of_plain_spark(machine: Machine) -> None:
    with opened(machine) as notebook:
        notebook.run(PLAIN_SESSION)
        notebook.run(f'spark.conf.set("spark.sql.shuffle.partitions", {FIRST})')
        notebook.run(START)
        plain = interrupted(machine, notebook)
        notebook.restart()
        notebook.run(shown_python())
        notebook.run(START)
        policy = policy_of(notebook)
        assert interrupted(machine, notebook) == plain == (Ran("KeyboardInterrupt", ""), "True", FIRST)
        assert policy_of(notebook) == policy


@pytest.mark.parametrize(
    "end",
    [
        *(pytest.param(end, marks=pytest.mark.matrix) for end in (shut_down, Notebook.restart)),
        killed,
    ],
)
def test_the_end_of_a_kernel_leaves_no_process(machine: Machine, end: Callable[[Notebook], None]) -> None:
    with opened(machine) as notebook:
        notebook.run(shown_python())
        assert partitions(notebook) == FIRST
        group = notebook.group
        assert {os.getpgid(pid) for pid in (notebook.jvm(), policy_of(notebook).pid)} == {group}
        end(notebook)
        eventually(lambda: not group_lives(group), "all that the kernel started has ended")
