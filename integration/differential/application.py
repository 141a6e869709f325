"""An application in its own process, with or without the plugin, that runs programs."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from integration.batch.plans import LEFT_ALONE
from integration.differential.compare import BUILDING, ENDED, Results
from integration.differential.script import PART
from integration.orders import connected
from integration.streaming.launch import WITH_PLUGIN, run_by_python
from spark_elastic.jar import jar_path
from spark_elastic_lab.demo.cluster import SMALL_JVM, Cluster
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic_tools.tail import GrowingFile

_WORKER = Path(__file__).with_name("worker.py")
_START_TIMEOUT_S = 120.0
#: Timeout (s) of plain Spark. A program takes about a second, and is too large if it takes longer than this.
PATIENCE_S = 60.0
#: The plugin's timeout as a multiple of that of plain Spark; no healthy run takes longer.
_HANGS = 4
NO_END = "no end"
EXECUTOR_SLOTS = 2
#: Messages in the driver's log about failures of the plugin that a result may not show.
_FAILED = (
    LEFT_ALONE,
    "not moved to",
    "could not be",
    ": could not ",
    "starts as plain Spark",
    "no answer from the policy",
)


class Runs(Protocol):
    """Runs the text of a program."""

    def send(self, text: str, root: str, part: str = "all", out: Path | None = None) -> None:
        """Start running a part of a text over the data in a folder; it writes to `out`, else a new folder."""

    def received(self) -> Results:
        """Return the results."""

    def renew(self, slots: int) -> None:
        """Run the next program in an environment that has learned nothing yet."""

    def contained(self) -> str:
        """Return the logged failures of parts of the plugin since the last call."""

    def stop(self) -> None:
        """End the run and everything it started."""


class Application:
    """Runs programs on a number of slots; after it has ended, it is started again for the next program.

    Without a `master`, the slots are threads of the driver; with one, they are executors of `EXECUTOR_SLOTS`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        elastic: bool,
        heap: str = "1g",
        jars: Sequence[Path] = (),
        conf: Mapping[str, str] | None = None,
        master: str | None = None,
    ) -> None:
        self._folder, self._heap, self._master = folder, heap, master
        self._class_path = os.pathsep.join(map(str, (jar_path(), *jars)))
        savepoints = {"spark.elastic.savepointDir": str(folder / "savepoints")}
        self._given = {**(conf or {}), **(WITH_PLUGIN | savepoints if elastic else {})}
        self._patience_s = PATIENCE_S * (_HANGS if elastic else 1)
        self._stack = ExitStack()
        self._starts = itertools.count()
        self._runs = itertools.count()
        self._orders: Connection | None = None
        self._process: LoggedProcess | None = None
        self._slots = 4
        self._is_fresh = False
        self._log: GrowingFile | None = None

    def renew(self, slots: int) -> None:
        """Run the next program in a new context, which has learned nothing yet."""
        self._slots, self._is_fresh = slots, False

    def send(self, text: str, root: str, part: str = "all", out: Path | None = None) -> None:
        """Start running a part of a text. Raises ProcessFailure if no application starts."""
        if not self._is_fresh:
            self._open()
        assert self._orders is not None
        out = out or self._folder / f"out-{next(self._runs)}"
        out.mkdir(parents=True, exist_ok=True)
        self._orders.send(("run", text, root, str(out), part))

    def received(self) -> Results:
        """Return the results; an application that is silent for too long is ended."""
        assert self._orders is not None
        try:
            if self._orders.poll(self._patience_s):
                found: Results = self._orders.recv()
                return found
            end = NO_END
        except (OSError, EOFError):
            end = "the application has died"
        tail = self._process.log_tail(200) if self._process else ""
        self.stop()
        memory = end != NO_END and "OutOfMemoryError" in tail
        return {ENDED: {"error": "out of memory" if memory else end, "text": tail[-1500:]}}

    def _open(self) -> None:
        for _ in range(2):
            orders = self._orders or self._start()
            journal = tempfile.mkdtemp(prefix="journal-", dir=self._folder)
            conf = {
                **self._given,
                "spark.master": self._master or f"local[{self._slots}]",
                "spark.cores.max": str(self._slots),
                "spark.elastic.journal.dir": journal,
            }
            try:
                orders.send(("open", conf))
                if orders.poll(_START_TIMEOUT_S) and orders.recv():
                    self._is_fresh = True
                    return
            except (OSError, EOFError):
                pass
            tail = self._process.log_tail() if self._process else ""
            self.stop()
        raise ProcessFailure(f"no context on {self._slots} slots\n{tail}")

    def _start(self) -> Connection:
        folder = self._folder / f"process-{next(self._starts)}"
        address = folder / "socket"
        settings = {
            "spark.driver.memory": self._heap,
            "spark.driver.extraClassPath": self._class_path,
            "spark.executor.extraClassPath": self._class_path,
            "spark.executor.cores": str(EXECUTOR_SLOTS),
            "spark.executor.memory": "640m",
            "spark.executor.extraJavaOptions": SMALL_JVM,
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.ui.showConsoleProgress": "false",
        }
        self._process = process = self._stack.enter_context(
            run_by_python(str(_WORKER), [str(address)], folder, settings)
        )
        self._log = GrowingFile(process.log)
        self._orders = orders = self._stack.enter_context(connected(process, address, _START_TIMEOUT_S))
        return orders

    def contained(self) -> str:
        """Return the plugin's failures that the current process has logged since the last call."""
        said = [] if self._log is None else self._log.new_lines()
        return "\n".join(line for line in said if any(part in line for part in _FAILED))

    def stop(self) -> None:
        """End the application and everything it started."""
        self._orders, self._is_fresh = None, False
        self._stack.close()

    def __enter__(self) -> Application:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()


class Pair:
    """Plain Spark and Spark with the plugin, which run the same programs at the same time."""

    def __init__(self, plain: Runs, elastic: Runs, data: Path) -> None:
        self.plain, self.elastic = plain, elastic
        self._real, self._seen = data / "data", data / "seen"
        self._real.mkdir(parents=True)
        self._seen.mkdir()
        self._handed = data / "handed"
        self._numbers = itertools.count()

    def renew(self, slots: int) -> None:
        """Run the next program in environments that have learned nothing yet."""
        self.plain.renew(slots)
        self.elastic.renew(slots)

    def contained(self) -> str:
        """Return the logged failures of parts of the plugin since the last call."""
        return self.elastic.contained()

    def run(self, text: str, *, apart: bool = False) -> tuple[Results, Results]:
        """Return a text's results without and with the plugin; `apart`: one after the other."""
        # Under a new path, files count as new: their sizes have not been learned yet.
        number = next(self._numbers)
        root = self._seen / str(number)
        os.symlink(self._real, root)
        self.plain.send(text, str(root))
        if f", {PART})" in text:
            return self.plain.received(), self._begun_by_plain(text, str(root), number)
        if not apart:
            self.elastic.send(text, str(root))
        found = self.plain.received()
        if found.get(ENDED, {}).get("error") == NO_END:
            self.elastic.stop()
            return found, found
        if apart:
            self.elastic.send(text, str(root))
        return found, self.elastic.received()

    def _begun_by_plain(self, text: str, root: str, number: int) -> Results:
        """Let plain Spark run the first part of a text; return the results of the plugin with the rest."""
        out = self._handed / str(number)
        self.plain.send(text, root, "first", out)
        begun = self.plain.received()
        if ENDED in begun or BUILDING in begun:
            return begun
        self.elastic.send(text, root, "rest", out)
        return self.elastic.received()


@contextmanager
def applications(folder: Path, *, on_cluster: bool = False, slots: int = 0, **more: Any) -> Iterator[Pair]:
    """Yield plain Spark and Spark with the plugin, the latter on a cluster's executors if `on_cluster`."""
    with ExitStack() as stack:
        master = None
        if on_cluster:
            cluster = stack.enter_context(Cluster(folder / "cluster"))
            cluster.add_worker(slots, memory_mb=1024 * slots)
            master = cluster.master_url
        plain = stack.enter_context(Application(folder / "plain", elastic=False, **more))
        elastic = stack.enter_context(Application(folder / "elastic", elastic=True, master=master, **more))
        yield Pair(plain, elastic, folder)
