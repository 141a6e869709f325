"""The target of the faults on a Standalone cluster of this machine's own processes."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
from attrs import define, field

from integration.chaos.master import without_executor
from integration.chaos.network import Network, network
from integration.chaos.odd_policy import OddPolicy
from integration.chaos.rows import INTO_FILES, Feeder, Tail
from integration.chaos.settings import (
    BEFORE,
    BOUNDED,
    CONF,
    FEWEST,
    LOG4J,
    MOST,
    NO_RESTARTS,
    OF_MODE,
    QUEUES,
    RESTARTS,
    Mode,
)
from integration.chaos.storage import Storage
from integration.chaos.world import READ_S, World
from integration.cluster.application import executors
from integration.jdk_tools import compile_java, write_stacks
from integration.streaming.launch import submitted
from integration.streaming.stand_ins import program
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster, Worker
from spark_elastic_lab.demo.processes import LoggedProcess
from spark_elastic_tools.client import Driver

_HERE = Path(__file__).parent
APP = _HERE / "apps" / "side_by_side.py"
_CALM_S = 60.0
_APART_S = 5.0
_SOME = 3
_UI_S = 120.0
_BEGUN_S = 180.0
# The time from the end of a driver to the end of everything it started.
_END_S = 20.0
# `SparkContext.stop` waits for the cleaner, and the cleaner waits for each executor to forget a broadcast. A
# frozen executor does not answer.
_WAITS_FOR_EXECUTOR = ("ContextCleaner.stop", "BlockManagerMaster.remove")
_LOST_WORKERS, _KEPT_DRIVERS = "workers_lost_by_master", "drivers_kept_by_executors"


@define(kw_only=True)
class Standalone(World):
    """The application on workers that come and go; it is started again when it ends."""

    cluster: Cluster
    storage: Storage
    odd_policy: OddPolicy
    #: None if the machine does not allow a network: then all workers are on loopback.
    network: Network | None
    #: Starts the application; its output goes to a new folder of this name.
    start: Callable[[str], LoggedProcess]
    process: LoggedProcess = field(init=False)
    workers: list[Worker] = field(factory=list)
    # Workers that were replaced because the master no longer gave them an executor, and drivers that were
    # killed because Spark waited for a frozen executor and they did not end in time.
    oddities: dict[str, int] = field(factory=lambda: {_LOST_WORKERS: 0, _KEPT_DRIVERS: 0})
    _ended: bool = False

    def place(self, name: str) -> Path:
        return self.storage.folder(name)

    def executors(self) -> dict[str, psutil.Process]:
        found: dict[str, psutil.Process] = {}
        for worker in self.workers:
            with suppress(psutil.NoSuchProcess):
                found |= executors(worker)
        return found

    def wanted_executors(self) -> tuple[int, str]:
        return len(self.workers), "workers of one core each"

    def run_application(self) -> None:
        """Start the application, for the first time or again, and wait for its UI. Raises AssertionError."""
        ui = self.output / "ui"
        ui.unlink(missing_ok=True)
        (self.output / "_stop").unlink(missing_ok=True)
        self.process = self.start(f"driver-{len(self.logs) + 1}")
        self.logs.append(self.process.log)
        eventually(lambda: ui.exists() or not self.process.running, "the application runs", _UI_S)
        assert self.process.running, self.process.log_tail()
        self.api = Driver(ui.read_text(), timeout_s=READ_S)
        self._ended = False

    def end_driver(self, number: signal.Signals) -> str:
        """End the driver's JVM with a signal; its children end on their own. Raises AssertionError."""
        return self._end(lambda: self.process.send(number))

    def stop_context(self) -> str:
        """Let the application stop its context, with all queries running, and end. Raises AssertionError."""
        kept = self.oddities[_KEPT_DRIVERS]
        said = self._end((self.output / "_stop").touch)
        ended_well = self.process.exit_code == 0 or self.oddities[_KEPT_DRIVERS] > kept
        assert ended_well, f"the application has ended with code {self.process.exit_code}"
        return said

    def _end(self, order: Callable[[], None]) -> str:
        policies, jvm = self.policies(), self.process.pid
        started = psutil.Process(jvm).children(recursive=True) if self.process.running else []
        self._ended = True
        order()
        # A frozen process reacts to no signal but SIGKILL.
        self.process.send(signal.SIGCONT)
        if self.process.wait(_END_S) is None:
            self._kill_waiting(jvm)
            return f"process {jvm}, whose context still waits for an executor"
        _, living = psutil.wait_procs(started, timeout=_END_S)
        living = [process for process in living if process.status() != psutil.STATUS_ZOMBIE]
        self.process.kill()
        assert not living, f"the driver has left processes behind: {living}, policies were {policies}"
        return f"process {jvm}"

    def _kill_waiting(self, jvm: int) -> None:
        """Kill a driver that does not end. Raises AssertionError unless Spark itself keeps it from ending."""
        stacks = self.folder / f"stacks-of-{self.process.log.parent.name}.txt"
        said = stacks.read_text() if write_stacks(jvm, stacks) else ""
        self.process.kill()
        by_spark = all(method in said for method in _WAITS_FOR_EXECUTOR)
        assert by_spark, f"the driver has not ended within {_END_S:g} s, see {stacks.name}"
        self.oddities[_KEPT_DRIVERS] += 1

    def has_written(self) -> bool:
        """Return whether each query has written some batches."""
        return all(self.tail.counts().get(name, 0) >= _SOME for name in self.names)

    def slow_down(self, queue: str, ms: int) -> None:
        """Make the application's listener in one of `QUEUES` take `ms` ms for each event."""
        hidden = self.folder / "slow.new"
        hidden.write_text(f"{queue} {ms}")
        hidden.replace(self.folder / "slow")

    def speed_up(self) -> None:
        """End the slowdown of all listeners."""
        (self.folder / "slow").unlink(missing_ok=True)

    def add_worker(self) -> Worker:
        """Start a worker."""
        self.workers.append(_start_worker(self.cluster, self.network))
        return self.workers[-1]

    def replace_lost(self) -> bool:
        """Replace the workers that get no more executors from the master."""
        try:
            return bool(self._replace_lost())
        except OSError:
            return False

    def _replace_lost(self) -> list[Worker]:
        lost = without_executor(self.cluster.master_ui, self.workers)
        if lost:
            time.sleep(_APART_S)  # by then, an executor that was being replaced has its successor
            lost = without_executor(self.cluster.master_ui, lost)
        for worker in lost:
            self.oddities[_LOST_WORKERS] += 1
            self.workers.remove(worker)
            self.cluster.remove_worker(worker)
            new = self.add_worker()
            self.say(f"the master has lost {worker.name}, {new.name} is there instead")
        return lost

    def forget_dead_workers(self) -> None:
        """Drop the workers that have ended."""
        self.workers = [worker for worker in self.workers if worker.process.running]

    def calm(self) -> None:
        """Undo what does not recover on its own: workers, sinks, storage, driver, bounds."""
        self.storage.bring_back()
        self.make_well()
        self.forget_dead_workers()
        while len(self.workers) < FEWEST:
            self.add_worker()
        while len(self.workers) > MOST:
            self.cluster.remove_worker(self.workers.pop(0))
        if self._ended:
            self.run_application()
        if self.mode in BOUNDED:
            eventually(self.open_bounds, "bounds can be set again", timeout_s=_CALM_S, every_s=0.2)

    def left_over(self) -> list[str]:
        return self.cluster.left_over()


@contextmanager
def standalone(
    folder: Path, *, restarts: bool = True, links: bool = True, mode: Mode = "adaptive"
) -> Iterator[Standalone]:
    """Run the application on its own cluster; everything ends with the block.

    With `restarts`, failed batches are retried; with `links`, each worker has a network namespace. Raises
    NotAllowed.
    """
    output = folder / "output"
    output.mkdir(parents=True)
    storage = Storage(folder / "away")
    compile_java(_HERE / "SlowListeners.java", storage.classes)
    odd_policy = OddPolicy(folder / "odd")
    command = [sys.executable, str(_HERE / "odd_policy.py"), str(odd_policy.file)]
    with ExitStack() as closing:
        joined = closing.enter_context(network()) if links else None
        host = joined.host if joined else "127.0.0.1"
        cluster = closing.enter_context(Cluster(folder / "cluster", host))
        workers = [_start_worker(cluster, joined) for _ in range(FEWEST)]
        feeder = Feeder(folder / "incoming")
        closing.callback(feeder.stop)
        conf = {
            **CONF,
            **OF_MODE[mode],
            **(RESTARTS if restarts else NO_RESTARTS),
            **storage.conf(f"-Dslow={folder / 'slow'} -Dqueues={','.join(QUEUES)}"),
            "spark.driver.host": host,
            "spark.driver.bindAddress": host,
            "spark.elastic.journal.dir": str(folder / "journal"),
            "spark.elastic.savepointDir": storage.place("savepoints"),
            "spark.elastic.savepoint.keep": "3",
            "spark.elastic.python": program(folder / "odd" / "python", command, pass_arguments=True),
        }
        if mode == "old":
            # Here the application itself does what the command for checkpoints does with our jar everywhere.
            conf["spark.executor.extraClassPath"] = conf["spark.driver.extraClassPath"]
        places = [str(folder / "incoming"), storage.place("checkpoints"), str(output)]
        places.append(storage.place(INTO_FILES))

        def start(name: str, conf: Mapping[str, str] = conf) -> LoggedProcess:
            conf_folder = folder / name / "conf"
            conf_folder.mkdir(parents=True)
            (conf_folder / "log4j2.properties").write_text(LOG4J)
            at = {"SPARK_LOCAL_IP": host}
            started = submitted(str(APP), places, folder / name, conf, cluster.master_url, at)
            return closing.enter_context(started)

        tail = Tail(output, storage.folder(INTO_FILES))
        made = Standalone(
            folder=folder,
            cluster=cluster,
            storage=storage,
            feeder=feeder,
            odd_policy=odd_policy,
            tail=tail,
            network=joined,
            start=start,
            mode=mode,
            workers=workers,
        )
        feeder.start()
        if mode == "old":
            others = {key: value for key, value in conf.items() if key not in OF_MODE[mode]}
            made.start = lambda name: start(name, {**others, **BEFORE})
            made.run_application()
            eventually(made.has_written, "all queries have begun in plain Spark", _BEGUN_S)
            made.end_driver(signal.SIGKILL)
            made.start = start
        made.run_application()
        yield made


def _start_worker(cluster: Cluster, joined: Network | None) -> Worker:
    if joined is None:
        return cluster.start_worker(1)
    host, within = joined.join()
    return cluster.start_worker(1, host=host, within=within)
