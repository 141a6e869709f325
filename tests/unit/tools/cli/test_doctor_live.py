"""Tests of `spark-elastic doctor --live`, which checks a running application."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from spark_elastic import __version__
from tests.unit.http.world import OLD_COUNTS
from tests.unit.tools.cli.served import Canned, Served, run, served

PARTS = {
    "streaming queries": "",
    "rescales of state": "this build of Spark has no o.a.s.sql.StateMover",
    "the Elastic tab": "not available on Spark 4.0.0",
}
OVERVIEW = "/elastic/api/v1/overview"


@pytest.fixture
def parted() -> Iterator[Served]:
    with served({"spark.elastic.schedulerMode": "reactive"}, parts=PARTS) as found:
        yield found


def doctor(driver: Served, *arguments: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """Ask the driver; return the exit code and the checks by name."""
    result = driver.run("doctor", "--live", "--json", *arguments)
    checks: dict[str, list[dict[str, Any]]] = {}
    for check in json.loads(result.stdout):
        checks.setdefault(check["check"], []).append(check)
    return result.exit_code, checks


def changed(driver: Served, **fields: object) -> None:
    """Let the driver answer with these fields changed."""
    told = driver.world.get(OVERVIEW).json
    driver.canned[OVERVIEW] = Canned(200, json.dumps({**told, **fields}))


def older(driver: Served, **fields: object) -> None:
    """Let the driver answer like an older one, which does not report what its Spark lacks."""
    told = {name: value for name, value in driver.world.get(OVERVIEW).json.items() if name != "lacks"}
    driver.canned[OVERVIEW] = Canned(200, json.dumps({**told, **fields}))


def test_each_part_that_is_off_is_named_with_its_reason(parted: Served) -> None:
    code, checks = doctor(parted)
    assert code == 0
    on, *off = checks["parts"]
    assert (on["status"], on["found"]) == ("ok", "on: streaming queries")
    assert [(check["status"], check["found"]) for check in off] == [
        ("warn", f"off: {name}: {PARTS[name]}") for name in list(PARTS)[1:]
    ]
    assert all("the rest works without it" in check["change"] for check in off)


def test_a_checkpoint_that_could_be_converted_is_named_with_what_to_type() -> None:
    with served(queries=[OLD_COUNTS]) as driver:
        (check,) = doctor(driver)[1]["checkpoint"]
    assert check["status"] == "warn"
    assert check["found"] == (
        "counts: Keep the checkpoint's 2 partitions: its state is in Spark's HDFS-backed store"
    )
    assert check["change"].startswith("Set spark.elastic.stateStore.convert=atStart to convert it")


def test_what_an_earlier_spark_is_without_is_said_once(parted: Served) -> None:
    older(parted, sparkVersion="4.0.5")
    (lack,) = doctor(parted)[1]["lacks"]
    assert (lack["status"], lack["change"]) == ("warn", "use Spark 4.1 or later if you need it")
    assert lack["found"].startswith("Spark 4.0.5 lacks adaptive execution in streams")
    older(parted, sparkVersion="4.0.5", parts=[])
    assert len(doctor(parted)[1]["lacks"]) == 2
    older(parted, sparkVersion="4.2.0")
    assert "lacks" not in doctor(parted)[1]


def test_the_driver_knows_best_what_it_is_without(parted: Served) -> None:
    told = {"what": "a lid", "why": "it is open", "instead": "it rains in", "since": "5.0", "other": 1}
    changed(parted, sparkVersion="4.0.5", lacks=[told])
    (lack,) = doctor(parted)[1]["lacks"]
    assert lack["found"] == "Spark 4.0.5 lacks a lid: it is open; it rains in"
    assert lack["change"] == "use Spark 5.0 or later if you need it"
    changed(parted, sparkVersion="4.0.5", lacks=[])
    assert "lacks" not in doctor(parted)[1]


def test_lines_say_the_same(parted: Served) -> None:
    said = parted.run("doctor", "--live").output
    reason = PARTS["rescales of state"]
    assert f"warn  parts         off: rescales of state: {reason}: the rest works without it" in said
    assert "ok    spark         Spark 4.2.0\n" in said


def test_a_driver_that_does_not_tell_its_parts_is_no_reason_to_worry(driver: Served) -> None:
    code, checks = doctor(driver)
    assert code == 0
    (parts,) = checks["parts"]
    assert parts["status"] == "ok"
    assert "not told" in parts["found"]


def test_who_it_is_and_how_it_scales(driver: Served) -> None:
    _, checks = doctor(driver)
    assert checks["driver"][0]["found"] == f"test (app-1) at {driver.url}"
    assert checks["mode"][0]["found"] == "adaptive"
    assert checks["version"] == [
        {"check": "version", "status": "ok", "found": f"spark-elastic {__version__}", "change": None}
    ]
    assert checks["slots"][0]["found"] == "4 on 2 executors"


def test_what_keeps_it_from_acting_is_a_warning(driver: Served) -> None:
    changed(driver, adviseOnly=True, executors=[], slots={"now": 0, "desired": None}, mayWrite=False)
    code, checks = doctor(driver)
    assert code == 0
    assert [check["status"] for check in checks["mode"]] == ["ok", "warn"]
    assert "adviseOnly" in checks["mode"][1]["change"]
    assert checks["slots"][0]["status"] == "warn"
    assert checks["changes"][0]["status"] == "warn"


def test_a_policy_that_was_replaced_is_a_warning(driver: Served) -> None:
    changed(driver, policyRestarts=0)
    assert doctor(driver)[1]["policy"][0]["status"] == "ok"
    changed(driver, policyRestarts=2)
    (policy,) = doctor(driver)[1]["policy"]
    assert (policy["status"], policy["found"]) == ("warn", "its process was replaced 2 times")


def test_another_version_is_a_failure_that_says_what_to_install(driver: Served) -> None:
    changed(driver, version="9.9.9")
    code, checks = doctor(driver)
    assert code == 1
    (version,) = checks["version"]
    assert version["status"] == "fail"
    assert "spark-elastic[cli]==9.9.9" in version["change"]


def test_a_driver_without_the_api_sends_to_its_log(driver: Served) -> None:
    driver.canned["/elastic"] = Canned(404)
    result = driver.run("doctor", "--live")
    assert result.exit_code == 3
    assert f"{driver.url} answers, but has no /elastic/api/v1" in result.output
    assert "search the driver's log for 'spark-elastic: '" in result.output


def test_an_address_alone_is_enough(driver: Served) -> None:
    assert f"test (app-1) at {driver.url}" in driver.run("doctor").output


def test_the_settings_of_a_file_and_a_driver_are_two_things(driver: Served, tmp_path: Any) -> None:
    (tmp_path / "some.conf").touch()
    result = run("doctor", "--live", "--properties-file", str(tmp_path / "some.conf"))
    assert result.exit_code == 2
    assert "--live asks a driver" in result.output


def test_a_custom_policy_without_an_answer_is_a_warning(driver: Served) -> None:
    one = {"name": "my.scaling:LateNight", "answers": 3, "failures": 0, "error": None, "since": None}
    changed(driver, customPolicies=[{**one, "retryAt": None}])
    assert doctor(driver)[1]["policy"][1]["found"] == "my.scaling:LateNight has answered 3 times"
    changed(
        driver, customPolicies=[{**one, "failures": 2, "error": "KeyError: 'x'", "since": 1, "retryAt": 2}]
    )
    policy = doctor(driver)[1]["policy"][1]
    assert (policy["status"], policy["found"]) == (
        "warn", "my.scaling:LateNight has no answer: KeyError: 'x'",
    )  # fmt: skip
