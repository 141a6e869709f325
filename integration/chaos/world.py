"""What the faults meet: a cluster, one application on it, its input, and the ways to look at them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psutil
from attrs import define, field

from integration.chaos.rows import QUERIES, Feeder, Tail
from integration.chaos.storage import Storage
from integration.cluster.application import executors
from integration.streaming.driver import policies_of
from integration.streaming.launch import WITH_PLUGIN, submitted
from integration.streaming.waiting import eventually
from spark_elastic.client.driver import Driver
from spark_elastic.client.failures import Busy, Failure, NoDriver
from spark_elastic.client.source import Json
from spark_elastic.demo.cluster import CONSOLE_LOG4J, Cluster, Worker
from spark_elastic.demo.processes import LoggedProcess

APP = Path(__file__).parent / "apps" / "side_by_side.py"
#: There are so many workers, at least and at most, while nothing is wrong.
FEWEST, MOST = 2, 3
_OPEN = 32_768
_READ_S, _CALM_S = 3.0, 60.0
_UI_S = 120.0
_SCHEDULER = "spark.elastic.adaptiveScheduler"
CONF = {
    **WITH_PLUGIN,
    "spark.executor.cores": "1",
    "spark.executor.memory": "640m",
    "spark.decommission.enabled": "true",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.elastic.schedulerMode": "adaptive",
    f"{_SCHEDULER}.rescalePolicy": "always",
    f"{_SCHEDULER}.submission.resourceStabilizationTimeout": "0",
    f"{_SCHEDULER}.executing.cooldownAfterRescaling": "2s",
    f"{_SCHEDULER}.executing.resourceStabilizationTimeout": "1s",
    # Bounds of one are not to take slots from the others.
    **{f"spark.elastic.query.{name}.slotSharingGroup": "all" for name in QUERIES},
    "spark.elastic.restartStrategy.type": "fixed-delay",
    "spark.elastic.restartStrategy.fixedDelay.delay": "2s",
    "spark.elastic.restartStrategy.fixedDelay.attempts": "1000000",
}
_LOG4J = f"""\
{CONSOLE_LOG4J}rootLogger.level = warn
logger.elastic.name = org.apache.spark.elastic
logger.elastic.level = info
logger.queries.name = org.apache.spark.sql.elastic
logger.queries.level = info
# Said of each file, and of each batch that takes longer than its trigger.
logger.files.name = org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
logger.files.level = error
logger.trigger.name = org.apache.spark.sql.elastic.Triggers$$anon$3
logger.trigger.level = error
"""


@define
class World:
    """A running application with its cluster; faults change it, `calm` puts it right."""

    folder: Path
    cluster: Cluster
    storage: Storage
    feeder: Feeder
    process: LoggedProcess
    api: Driver
    tail: Tail
    workers: list[Worker] = field(factory=list)
    most: int = MOST
    _ids: dict[str, str] = field(factory=dict)
    _ills: int = 0

    @property
    def output(self) -> Path:
        """Return where the application writes."""
        return self.folder / "output"

    def journals(self) -> list[Path]:
        """Return the journals, those that were set aside too."""
        names = (self.folder / "journal").glob("*.jsonl*")
        return sorted(path for path in names if not path.name.endswith(".1"))

    def say(self, what: str) -> None:
        """Note something in the harness' own log, with the time as in the driver's."""
        with (self.folder / "chaos.log").open("a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {what}\n")

    def executors(self) -> dict[str, psutil.Process]:
        """Return the executors that live, by their id."""
        found: dict[str, psutil.Process] = {}
        for worker in self.workers:
            with suppress(psutil.NoSuchProcess):
                found |= executors(worker)
        return found

    def policies(self) -> list[psutil.Process]:
        """Return the policy processes that live."""
        return policies_of(self.process.pid)

    def queries(self) -> Mapping[str, Json]:
        """Return the queries by name, as the API shows them. Raises Failure."""
        found = {str(query["name"]): query for query in self.api.get("/queries")["queries"]}
        self._ids |= {name: str(query["id"]) for name, query in found.items()}
        return found

    def query(self, name: str) -> Json:
        """Return one query. Raises Failure."""
        return self.api.get(self.path(name))

    def path(self, name: str) -> str:
        """Return the path of a query in the API."""
        if name not in self._ids:
            self.queries()
        return f"/queries/{quote(self._ids[name])}"

    def bounds(self, name: str) -> Json:
        """Return the bounds of a query. Raises Failure."""
        return self.api.get(f"{self.path(name)}/resource-requirements")

    def set_bounds(self, name: str, lower: int, upper: int) -> None:
        """Give a query other bounds. Raises Failure."""
        body = {"shuffle": {"parallelism": {"lowerBound": lower, "upperBound": upper}}}
        self.api.put(f"{self.path(name)}/resource-requirements", body, "*")

    def make_ill(self, name: str) -> None:
        """Let the batches of a query fail, in other words than the last time."""
        self._ills += 1
        words = "very " * (self._ills % 7)
        hidden = self.output / f".ill-{name}"
        hidden.write_text(f"the sink is {words}ill")
        hidden.replace(self.output / f"ill-{name}")

    def make_well(self) -> None:
        """Let no batch fail any more."""
        for ill in self.output.glob("ill-*"):
            ill.unlink()

    def ask_for_executors(self) -> None:
        """Let a query need more executors than there can be, for a moment, so that none is left out."""
        name = next(iter(self.queries()))
        self.set_bounds(name, MOST + 2, _OPEN)
        self.set_bounds(name, 1, _OPEN)

    def add_worker(self) -> Worker:
        """Start a worker."""
        self.workers.append(self.cluster.start_worker(1))
        return self.workers[-1]

    def forget_dead_workers(self) -> None:
        """Leave out the workers that have ended."""
        self.workers = [worker for worker in self.workers if worker.process.running]

    def calm(self) -> None:
        """Undo what is not undone by itself: workers, sinks, storage, bounds. Raises AssertionError."""
        self.storage.bring_back()
        self.make_well()
        self.forget_dead_workers()
        while len(self.workers) < FEWEST:
            self.add_worker()
        while len(self.workers) > MOST:
            self.cluster.remove_worker(self.workers.pop(0))
        eventually(self._open_bounds, "bounds can be set again", timeout_s=_CALM_S, every_s=0.2)

    def _open_bounds(self) -> bool:
        try:
            for name in self.queries():
                bounds = self.bounds(name)["shuffle"]["parallelism"]
                if (bounds["lowerBound"], bounds["upperBound"]) != (1, _OPEN):
                    self.set_bounds(name, 1, _OPEN)
            return True
        except (Busy, NoDriver):
            assert self.process.running, self.process.log_tail()
            return False


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Run the application on a cluster of its own; all of it ends with the block."""
    (folder / "output").mkdir(parents=True)
    conf_folder = folder / "driver" / "conf"
    conf_folder.mkdir(parents=True)
    (conf_folder / "log4j2.properties").write_text(_LOG4J)
    storage = Storage(folder / "away")
    with ExitStack() as closing:
        cluster = closing.enter_context(Cluster(folder / "cluster"))
        workers = [cluster.start_worker(1) for _ in range(FEWEST)]
        feeder = Feeder(folder / "incoming")
        closing.callback(feeder.stop)
        conf = {**CONF, **storage.conf(), "spark.elastic.journal.dir": str(folder / "journal")}
        places = [str(folder / "incoming"), storage.place("checkpoints"), str(folder / "output")]
        started = submitted(str(APP), places, folder / "driver", conf, cluster.master_url)
        process = closing.enter_context(started)
        feeder.start()
        ui = folder / "output" / "ui"
        eventually(lambda: ui.exists() or not process.running, "the application runs", _UI_S)
        assert process.running, process.log_tail()
        api = Driver(ui.read_text(), timeout_s=_READ_S)
        made = World(folder, cluster, storage, feeder, process, api, Tail(folder / "output"), workers)
        yield made


def answers(world: World) -> bool:
    """Tell whether the policy answers."""
    try:
        world.api.get("/overview")
    except Failure:
        return False
    return True
