"""A Spark Connect server, started like its own start script does: spark-submit of its main class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen
from pyspark.sql import SparkSession

from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN, launched
from integration.streaming.waiting import PATIENCE_S
from spark_elastic_lab.demo.processes import LoggedProcess

_MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


@frozen
class ConnectServer:
    """A running server on local[2] with the plugin."""

    process: LoggedProcess
    url: str
    """The address for clients, in the form that `builder.remote` expects."""
    api: Client

    def said(self) -> list[str]:
        """Return the lines of the log."""
        return self.process.log.read_text(errors="replace").splitlines()


@contextmanager
def connect_server(folder: Path, conf: Mapping[str, str]) -> Iterator[ConnectServer]:
    """Start a server on a port that the system chooses; it ends with the block, with its child processes."""
    settings = {
        **WITH_PLUGIN,
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **conf,
    }
    with (
        launched("connect server", ["--class", _MAIN_CLASS, "spark-internal"], folder, settings) as process,
        pytest.MonkeyPatch.context() as patch,
    ):
        # A client's first session sets this permanently, and then no other test could have a classic session.
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        ui = process.wait_for_line(r"service 'SparkUI' on port (\d+)", PATIENCE_S)[1]
        address = process.wait_for_line(r"Spark Connect server started at: (\S+:\d+)", PATIENCE_S)[1]
        yield ConnectServer(process, f"sc://{address}", Client(f"http://127.0.0.1:{ui}", "/elastic/api/v1"))


def client(server: ConnectServer) -> SparkSession:
    """Return a session of a separate client."""
    return SparkSession.builder.remote(server.url).create()
