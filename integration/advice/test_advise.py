"""Tests that the event logs of real applications are read, however Spark writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from integration.advice.record import APPS, run
from integration.browser.test_history_server import history_server
from integration.streaming.http import Client
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_tools.cli.main import cli

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

CODECS = ("zstd", "lz4", "snappy", "lzf", "none")


def advise(*args: str) -> Any:
    found = CliRunner().invoke(cli, ["advise", "--json", *args])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def conf_of(logs: Path, codec: str, *, rolling: bool) -> dict[str, str]:
    logs.mkdir(exist_ok=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.compress": str(codec != "none").lower(),
        "spark.eventLog.rolling.enabled": str(rolling).lower(),
        "spark.eventLog.rolling.maxFileSize": "10m",
        **({"spark.eventLog.compression.codec": codec} if codec != "none" else {}),
    }


@pytest.mark.parametrize(
    "codec", [CODECS[0], *(pytest.param(codec, marks=pytest.mark.slow) for codec in CODECS[1:])]
)
def test_a_log_is_read_however_it_is_compressed(tmp_path: Path, codec: str) -> None:
    logs = tmp_path / "logs"
    run(tmp_path, "batch", conf_of(logs, codec, rolling=codec == "zstd"), 0, workers=1)
    (found,) = advise(str(logs))
    assert found["ended"]
    batch = found["batch"]
    assert batch["executions"] >= 2
    many = [stage for stage in batch["worst"] if "too_many" in stage["kinds"]]
    assert [stage["tasks"] for stage in many] == [200]
    assert 1 <= many[0]["advisedTasks"] < 20


def test_a_query_of_plain_spark_is_described_and_simulated(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    conf = conf_of(logs, "zstd", rolling=True)
    run(tmp_path, "stream", {**conf, "spark.sql.shuffle.partitions": "24"}, 80)
    (found,) = advise(str(logs), "--price", "0.05")
    (query,) = found["queries"]
    assert (query["name"], query["stateful"], query["store"]) == ("counts", True, "hdfs")
    assert query["partitions"] == query["tasks"] == 24
    assert query["slots"] == {"fewest": 2, "usual": 2, "most": 2}
    assert query["stateRows"] == 50
    assert query["triggerMs"] in (0, 1_000, None)
    assert {"too_many_partitions", "small_state"} <= {one["code"] for one in query["findings"]}
    outcomes = {one["policy"]: one for one in found["whatIf"]["outcomes"]}
    assert list(outcomes) == ["recorded", "reactive", "declared", "autoscale"]
    was, reactive = outcomes["recorded"], outcomes["reactive"]
    assert reactive["executorHours"] == pytest.approx(was["executorHours"], rel=0.05)
    assert reactive["medianBatchMs"]["counts"] < was["medianBatchMs"]["counts"]
    assert was["cost"] == pytest.approx(was["coreHours"] * 0.05)


def test_a_log_that_is_still_written_is_read(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    conf = {**conf_of(logs, "lz4", rolling=False), "spark.sql.shuffle.partitions": "2"}
    with Cluster(tmp_path / "cluster") as cluster:
        cluster.add_worker()
        driver = cluster.submit(APPS, ["stream", str(tmp_path), "300"], conf=conf)
        try:
            eventually(
                lambda: any(one["queries"] for one in _so_far(logs)),
                "a micro-batch is in the log",
                timeout_s=120,
            )
            (found,) = advise(str(logs))
        finally:
            driver.kill()
    assert not found["ended"]
    assert found["queries"][0]["name"] == "counts"
    assert any("unfinished" in text for text in found["unsure"])


def _so_far(logs: Path) -> Any:
    found = CliRunner().invoke(cli, ["advise", "--json", str(logs)])
    return json.loads(found.stdout) if found.exit_code == 0 else []


@pytest.mark.slow
def test_a_history_server_gives_its_logs(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    run(tmp_path, "batch", conf_of(logs, "zstd", rolling=True), 0, workers=1)
    with history_server(tmp_path, logs) as url:
        api = Client(url, "/api/v1")
        eventually(lambda: api.get("/applications").json, "the event log is read")
        (found,) = advise(url)
        assert found["batch"]["worst"]
        (again,) = advise(f"{url}/history/{found['application']}/jobs/")
        assert again["batch"] == found["batch"]
