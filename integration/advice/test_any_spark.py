"""Tests that the event log of every supported Spark is advised on."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from integration.advice.record import run
from integration.advice.test_advise import advise, conf_of

# The default Spark has separate tests for each of these.
pytestmark = [pytest.mark.integration, pytest.mark.matrix, pytest.mark.timeout(300)]

SECONDS = 30
PARTITIONS = 24


def test_a_log_of_this_spark_is_advised_on(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    conf = {**conf_of(logs, "lz4", rolling=True), "spark.sql.shuffle.partitions": str(PARTITIONS)}
    run(tmp_path, "both", conf, SECONDS, workers=1)
    (found,) = advise(str(logs))
    assert found["sparkVersion"] == pyspark.__version__
    assert found["ended"]
    (query,) = found["queries"]
    assert (query["name"], query["store"], query["partitions"]) == ("counts", "hdfs", PARTITIONS)
    assert query["batches"] > 0
    assert query["stateRows"] == 50
    assert "too_many_partitions" in {one["code"] for one in query["findings"]}
    many = [stage for stage in found["batch"]["worst"] if "too_many" in stage["kinds"]]
    assert [stage["tasks"] for stage in many] == [200]
    assert found["proposal"]["settings"]
