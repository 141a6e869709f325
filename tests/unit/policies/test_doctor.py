"""Tests that `spark-elastic doctor` tries the configured custom policies before an application does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from spark_elastic_tools.cli import checks

EXAMPLES = "tests.unit.policies.examples"
FILE = Path("spark-defaults.conf")


@pytest.mark.parametrize(
    ("policy", "status", "found"),
    [
        (f"{EXAMPLES}:Steady", "ok", f"{EXAMPLES}:Steady can be imported and made here"),
        (f"{EXAMPLES}:Nothing", "fail", f"the policy {EXAMPLES}:Nothing cannot be imported: AttributeError"),
    ],
)
def test_a_custom_policy_is_tried(
    started_since: Callable[[], list[psutil.Process]], policy: str, status: str, found: str
) -> None:
    conf = {"spark.elastic.schedulerMode": "adaptive", "spark.elastic.policy": policy}
    (tried,) = (check for check in checks.settings(conf, FILE) if check.check == "policy")
    assert tried.status == status
    assert tried.found.startswith(found)
    assert (tried.change is None) == (status == "ok")
    assert started_since() == []
