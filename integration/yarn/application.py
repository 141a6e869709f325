"""A plain PySpark application that spark-submit starts on YARN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen

from integration.spark_minor import MOVES_STATE
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN, launched
from integration.yarn.hadoop import Yarn
from spark_elastic_lab.demo.cluster import SMALL_JVM, spark_home
from spark_elastic_lab.demo.processes import LoggedProcess

API = "/elastic/api/v1"
_SUBMITTED_S = 120.0
_LOOPBACK = "127.0.0.1"


@frozen
class Application:
    """A process of spark-submit, and its driver as seen through YARN's proxy."""

    id: str
    process: LoggedProcess
    proxy: str

    @property
    def url(self) -> str:
        """Return the address for a browser, or for --url."""
        return f"{self.proxy}/proxy/{self.id}"

    @property
    def client(self) -> Client:
        return Client(self.proxy, f"/proxy/{self.id}{API}")

    def slots(self) -> int | None:
        """Return the number of slots that the policy knows, None if there is no answer yet."""
        reply = self.client.get("/overview")
        # Until the application is up, Spark's UI returns a page of its own, with status 200.
        there = reply.status == 200 and reply.headers.get("content-type") == "application/json"
        return int(reply.json["slots"]["now"]) if there else None

    def executors(self) -> list[str]:
        """Return the ids of the executors."""
        return [executor["id"] for executor in self.client.get("/overview").json["executors"]]

    def shown(self, name: str) -> Any:
        (query,) = self.client.get(f"/queries?search={name}").json["queries"]
        return query

    def ran_with(self, **partitions: int) -> bool:
        """Return whether the last micro-batches of these queries had this many partitions.

        Where state cannot be moved, `counts` keeps its first number, and only has to run.
        """
        if self.slots() is None:
            return False
        last = {query["name"]: query["lastBatch"] for query in self.client.get("/queries").json["queries"]}
        kept = () if MOVES_STATE else ("counts",)
        return all(
            last.get(name) and (name in kept or last[name]["partitions"] == n)
            for name, n in partitions.items()
        )


@contextmanager
def application(
    yarn: Yarn, folder: Path, conf: Mapping[str, str], flags: Sequence[str] = ()
) -> Iterator[Application]:
    """Run the application of `rates.py` with the plugin; it ends with the block."""
    settings = {
        **WITH_PLUGIN,
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.executor.instances": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SMALL_JVM,
        "spark.executorEnv.SPARK_LOCAL_IP": _LOOPBACK,
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": _LOOPBACK,
        # By default every application uploads some hundred MB of jars.
        "spark.yarn.jars": f"local:{spark_home()}/jars/*",
        "spark.yarn.stagingDir": (folder / "staging").as_uri(),
        **conf,
    }
    program = [*flags, str(Path(__file__).with_name("rates.py")), str(folder / "checkpoints")]
    env = {"HADOOP_CONF_DIR": str(yarn.conf)}
    with launched("rates", program, folder, settings, "yarn", env) as process:
        said = process.wait_for_line(r"Submitted application (application_\d+_\d+)", _SUBMITTED_S)
        yield Application(said[1], process, yarn.proxy)
