"""An application that runs batch queries on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from integration.orders import connected
from integration.streaming.launch import submitted
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure

_APPLICATION = Path(__file__).with_name("batch_app.py")
_START_TIMEOUT_S = 120.0
_QUERY_TIMEOUT_S = 600.0


class Run(NamedTuple):
    """One run of a query with the number of partitions that was set, None for none; times in epoch ms."""

    query: str
    partitions: int | None
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """Return its duration (s)."""
        return (self.ended - self.began) / 1000


class BatchDriver:
    """The driver process of such an application, and the connection to it."""

    def __init__(self, process: LoggedProcess, orders: Connection) -> None:
        self._process = process
        self._orders = orders

    def run(self, query: str, partitions: int | None) -> Run:
        """Run a query to its end. Raises ProcessFailure if it fails or takes 10 min."""
        began, ended = self._ask((query, partitions), _QUERY_TIMEOUT_S, f"{query} has no end")
        return Run(query, partitions, began, ended)

    def read(self, tables: Path) -> None:
        """Let the queries read the tables of another folder. Raises ProcessFailure."""
        self._ask(tables, _START_TIMEOUT_S, f"it does not read {tables}")

    def cost(self) -> Mapping[str, int]:
        """Return the cost of all stages so far. Raises ProcessFailure."""
        found: Mapping[str, int] = self._ask("cost", _START_TIMEOUT_S, "it does not say what it has cost")
        return found

    def _ask(self, order: object, timeout_s: float, silent: str) -> Any:
        """Send an order and return the answer. Raises ProcessFailure with `silent` if there is none."""
        try:
            self._orders.send(order)
            if self._orders.poll(timeout_s):
                return self._orders.recv()
        except (OSError, EOFError):
            pass
        raise ProcessFailure(f"{silent}\n{self._process.log_tail()}")

    def end(self) -> None:
        """Let the application end on its own and write its last output. Raises ProcessFailure."""
        self._orders.send(None)
        if self._process.wait(_START_TIMEOUT_S) != 0:
            raise ProcessFailure(f"the application did not end well\n{self._process.log_tail()}")


@contextmanager
def batch_driver(folder: Path, data: Path, conf: Mapping[str, str]) -> Iterator[BatchDriver]:
    """Yield a ready application over `data` (tables, queries.json); it ends with the block."""
    # The path of a socket must be short; that of a temporary folder is.
    address = folder.with_suffix(".socket")
    # The usual JIT compiler and garbage collector, as users run Spark.
    settings = {
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": "",
        # The cost of the stages is summed up from Spark's own records of them.
        "spark.ui.retainedStages": "1000000",
        **conf,
    }
    arguments = [str(data / "tables"), str(data / "queries.json"), str(address)]
    with (
        submitted(str(_APPLICATION), arguments, folder, settings) as process,
        connected(process, address, _START_TIMEOUT_S) as orders,
    ):
        yield BatchDriver(process, orders)
