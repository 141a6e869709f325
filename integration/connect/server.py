"""A Spark Connect server as its own start script starts it: spark-submit of its main class."""

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
    """Where clients connect to, as `builder.remote` wants it."""
    api: Client

    def said(self) -> list[str]:
        """Return the lines of the log."""
        return self.process.log.read_text(errors="replace").splitlines()


@contextmanager
def connect_server(folder: Path, conf: Mapping[str, str]) -> Iterator[ConnectServer]:
    """Give a server on a port chosen by the system; it ends with the block, with all it started."""
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
        # A client's first session sets it for good, and then no other test could have a classic one.
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        ui = process.wait_for_line(r"service 'SparkUI' on port (\d+)", PATIENCE_S)[1]
        address = process.wait_for_line(r"Spark Connect server started at: (\S+:\d+)", PATIENCE_S)[1]
        yield ConnectServer(process, f"sc://{address}", Client(f"http://127.0.0.1:{ui}", "/elastic/api/v1"))


def client(server: ConnectServer) -> SparkSession:
    """Return a session of a client's own."""
    return SparkSession.builder.remote(server.url).create()
