"""An application that runs the texts of programs, one after another, on orders from a socket.

usage: worker.py SOCKET
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from integration.batch.plans import asked
from integration.differential import data, harness
from integration.differential.compare import BUILDING
from integration.differential.measure import MEASURED, Meter
from integration.differential.script import IMPORTS, PART
from integration.differential.streams import harness as streams
from integration.streaming.waiting import eventually


def run(spark: SparkSession, text: str, root: str, out: str, part: str = "all") -> dict[str, Any]:
    """Run a part of the text of a program in a new session, and return the results of its actions."""
    session = spark.newSession()
    spark.sparkContext.setCheckpointDir(f"{out}/checkpoints")
    # Python workers get a program's functions by value, as if they were defined in a script.
    modules = (data, harness, streams)
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(IMPORTS, names)
    names |= {name: value for module in modules for name, value in vars(module).items() if name[0] != "_"}
    harness.RESULTS.clear()
    harness.COUNTS.clear()
    meter = Meter(session)
    try:
        exec(text, names | {"spark": session, "DATA": root, "OUT": out, PART: part})
    except streams.HandedOver:
        pass
    except Exception as error:
        harness.RESULTS[BUILDING] = {"error": harness.condition(error), "text": str(error)[:1500]}
    finally:
        _tidy(session)
    measured = {**meter.end(), **harness.COUNTS}
    return {**harness.RESULTS, **({MEASURED: measured} if measured else {})}


def _tidy(session: SparkSession) -> None:
    for query in session.streams.active:
        query.stop()
    session.catalog.clearCache()
    for rdd in list(session.sparkContext._jsc.getPersistentRDDs().values()):
        rdd.unpersist()
    for table in session.catalog.listTables():
        if not table.isTemporary:
            session.sql(f"DROP TABLE IF EXISTS {table.name}")


def opened(conf: Mapping[str, str]) -> SparkSession:
    """Start a context; with the plugin, wait until the policy answers questions about stages."""
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if "spark.plugins" in conf:
        eventually(lambda: asked(spark), "a batch stage is decided about")
    return spark


def serve(address: str) -> None:
    """Carry out orders until the client disconnects."""
    spark: SparkSession | None = None
    with (
        Listener(address, family="AF_UNIX") as listener,
        listener.accept() as orders,
        contextlib.suppress(EOFError),
    ):
        while True:
            order, *arguments = orders.recv()
            if order == "open":
                if spark is not None:
                    spark.stop()
                spark = opened(*arguments)
                orders.send(True)
            else:
                assert spark is not None
                orders.send(run(spark, *arguments))
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    serve(sys.argv[1])
