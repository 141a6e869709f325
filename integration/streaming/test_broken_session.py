"""A session that cannot be built is its application's business: nothing of ours tries it again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.streaming.driver import driver
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

LISTENERS = "spark.sql.queryExecutionListeners"


def test_it_is_tried_once_more_and_not_again_and_again(tmp_path: Path) -> None:
    with driver(tmp_path / "driver") as jvm, jvm.session(WITH_PLUGIN) as spark:

        def tries() -> int:
            return sum("its query manager could not be replaced" in line for line in jvm.said())

        assert spark.range(10).count() == 10
        conf = spark.sparkContext._jsc.sc().conf()
        conf.set(LISTENERS, "no.such.Listener")
        with pytest.raises(Exception, match="Error while instantiating"):
            spark.newSession().range(1).count()
        eventually(lambda: tries() and "elastic-install" not in jvm.threads(), "nobody waits for it")
        # By now there would be hundreds.
        assert spark.range(10).count() == 10
        assert tries() == 1
        conf.remove(LISTENERS)
        assert spark.newSession().range(10).count() == 10
