"""Tests that a broker ends with all of its processes, whatever error its user has met."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic_lab.demo.broker import Broker
from spark_elastic_lab.demo.processes import ProcessFailure

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def use(broker: Broker) -> None:
    with broker:
        broker.create_topic("lines", 2)
        broker.producer("lines").send([("key", "never waited for")])
        broker.set_partitions("lines", 1)


def test_what_a_broker_refuses_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "broker")
    with pytest.raises(ProcessFailure, match="--topic lines --partitions 1 ended with code 1"):
        use(broker)
    assert broker.left_over() == []
