"""Tests of alert rules, and of autoscalers' queries, with promtool, which is built once: minutes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from integration.go_modules import is_built, missing_go
from integration.monitoring.prometheus import PROMETHEUS, RULES, promtool
from tests.unit.http.world import world
from tests.unit.kubernetes.rendered import FOLDER, manifest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(missing_go() is not None and not is_built(PROMETHEUS), reason=str(missing_go())),
]
CASES = Path(__file__).with_name("alerts.test.yml")
DESIRED, SLOTS = "spark_elastic_desired_slots", "spark_elastic_slots"
OURS = 'namespace="spark", service="orders-driver"'


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_promtool_takes_the_rules() -> None:
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(rules())} rules found" in checked.stdout


def test_promtool_has_no_complaints_about_the_metrics() -> None:
    with world() as running:
        text = running.get("/elastic/metrics").text
    checked = promtool("check", "metrics", stdin=text)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_rules_fire_when_they_should_and_not_before() -> None:
    tested = promtool("test", "rules", str(CASES))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_each_rule_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    for fires in (True, False):
        named = {case["alertname"] for case in cases if bool(case["exp_alerts"]) is fires}
        assert named == {rule["alert"] for rule in rules()}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("load_ratio > 1", "load_ratio > 1.4"),
        ("for: 15m", "for: 5m"),
        ('status="failed"', 'status="ignored"'),
        ("restarts_total[1h]) >= 4", "restarts_total[1h]) > 3"),
        ("for: 10m", "for: 20m"),
        ("restarts_total[1h]) >= 3", "restarts_total[1h]) > 2"),
    ],
)
def test_a_rule_that_is_wrong_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    text = RULES.read_text()
    assert text.count(right) == 1
    (tmp_path / RULES.name).write_text(text.replace(right, wrong))
    cases = yaml.safe_load(CASES.read_text())
    cases["rule_files"] = [RULES.name]
    (tmp_path / CASES.name).write_text(yaml.safe_dump(cases))
    assert promtool("test", "rules", str(tmp_path / CASES.name)).returncode != 0


def keda_query() -> str:
    (trigger,) = manifest("reactive-keda").one("ScaledObject")["spec"]["triggers"]
    return str(trigger["metadata"]["query"])


def adapter_query() -> str:
    """Return what prometheus-adapter asks for the metric of the chart's autoscaler."""
    values = yaml.safe_load((FOLDER / "prometheus-adapter.yaml").read_text())
    (rule,) = values["rules"]["external"]
    return str(rule["metricsQuery"]).replace("<<.Series>>", DESIRED).replace("<<.LabelMatchers>>", OURS)


def series(name: str, pod: str, values: str, of: str = OURS) -> dict[str, str]:
    return {"series": f'{name}{{{of}, pod="{pod}"}}', "values": values}


@pytest.mark.parametrize("query", [keda_query(), adapter_query()], ids=["keda", "adapter"])
def test_workers_are_scaled_by_the_sum_of_all_applications_and_not_while_one_is_unknown(
    query: str, tmp_path: Path
) -> None:
    others = OURS.replace("orders", "others")
    # The second application has no query yet, and the third one has other workers.
    given = [
        series(DESIRED, "1", "2x20"),
        series(SLOTS, "1", "3x20"),
        series(DESIRED, "2", "_x5 3x15"),
        series(SLOTS, "2", "3x20"),
        series(DESIRED, "3", "9x20", others),
        series(SLOTS, "3", "9x20", others),
    ]
    cases = [
        {"expr": query, "eval_time": "4m", "exp_samples": []},
        {"expr": query, "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 5}]},
    ]
    tests = [{"interval": "1m", "input_series": given, "promql_expr_test": cases}]
    file = tmp_path / "queries.test.yml"
    file.write_text(json.dumps({"evaluation_interval": "1m", "tests": tests}))
    tested = promtool("test", "rules", str(file))
    assert tested.returncode == 0, tested.stdout + tested.stderr
