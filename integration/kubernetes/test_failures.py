"""Test of what becomes of an application without the setting for failures that application.conf has."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.kubernetes.application import IN_FORCE_S, in_client_mode
from integration.kubernetes.bounds import bounded, change_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.objects import QUOTA, existing

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

# SparkExitCode.EXCEED_MAX_EXECUTOR_FAILURES
_TOO_MANY_FAILURES = 11


def test_refused_pods_end_an_application_without_the_setting(cluster: Cluster, tmp_path: Path) -> None:
    conf = {**bounded(tmp_path, 1), "spark.executor.maxNumFailures": None}
    with in_client_mode(cluster, tmp_path, conf) as app:
        app.data.feed.start()
        app.wait_for(1)
        with existing(app.kubectl, QUOTA):
            change_bounds(app, 2)
            assert app.process.wait(IN_FORCE_S) == _TOO_MANY_FAILURES, app.process.log_tail()
    assert "Max number of executor failures" in app.process.log.read_text(errors="replace")
