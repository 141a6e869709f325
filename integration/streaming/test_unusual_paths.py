"""Tests that checkpoints in folders whose names a URI escapes or misinterprets are moved like others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from integration.spark_minor import MOVES_STATE
from integration.streaming.files import Inbox
from integration.streaming.world import Totals, World, feed_until_rescaled, totals

pytestmark = [
    pytest.mark.integration,
    pytest.mark.matrix,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not MOVES_STATE, reason="state is moved from Spark 4.2 on"),
]

NAMES = ["a space", "50%", "%20", "a#b", "ü\u00a0x:y [a]{b}^|?&=+"]


@pytest.mark.parametrize("name", NAMES)
def test_state_is_moved(world: World, inbox: Inbox, tmp_path: Path, name: str) -> None:
    sink = Totals()
    parent = tmp_path / "checkpoints"
    writer = totals(world.spark, inbox).writeStream.outputMode("update").foreachBatch(sink)
    query = writer.option("checkpointLocation", str(parent / name)).start()
    inbox.put(2)
    query.processAllAvailable()
    world.policy.order(every=1)
    feed_until_rescaled(world, inbox, query, times=3)
    world.policy.order()
    query.processAllAvailable()
    assert sink.now == inbox.totals()
    query.stop()
    assert not world.policy.all("ActionFailed")
    assert os.listdir(parent) == [name]
    assert not [path for path in os.listdir(tmp_path) if path not in ("checkpoints", inbox.folder.name)]
