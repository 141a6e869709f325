"""Tests of `spark-elastic simulate`, as a user calls it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spark_elastic import __version__
from spark_elastic.core import events as ev
from spark_elastic.wire import encode_event
from spark_elastic_tools.cli.main import cli
from tests.unit.core.builder import STATELESS

SCENARIO = """
hours: 0.2
queries:
  counts: {load: constant:rate=2000}
settings: {spark.elastic.query.counts.upperBound: 8}
"""


def simulate(*args: str) -> Result:
    return CliRunner().invoke(cli, ["simulate", *args])


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return str(path)


def test_a_scenario_gives_a_table_of_its_policies(file: str) -> None:
    found = simulate(file, "--policy", "reactive", "--policy", "fixed:executors=3", "--policy", "reactive")
    assert found.exit_code == 0
    assert [line.split()[:2] for line in found.stdout.splitlines()[1:3]] == [
        ["reactive", "0.4"],
        ["fixed:executors=3", "0.6"],
    ]
    assert "reactive: done" in found.stderr


def test_the_same_call_gives_the_same_bytes(file: str) -> None:
    first, second = (simulate(file, "--policy", "autoscale", "--json", "--seed", "5") for _ in range(2))
    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["seed"] == 5


def test_what_is_typed_counts_more_than_the_file(file: str) -> None:
    found = simulate(
        file, "--load", "counts=constant:rate=0", "--load", "more=constant:rate=0", "--hours", "0.1",
        "--max-lag", "60", "--conf", "spark.elastic.schedulerMode=adaptive", "--json",
    )  # fmt: skip
    assert found.exit_code == 0
    data = json.loads(found.stdout)
    assert (data["hours"], data["maxLagSeconds"]) == (0.1, 60)
    assert data["policies"]["as-set"]["largest_lag_rows"] == 0


def test_loads_alone_are_a_scenario() -> None:
    found = simulate("--load", "a=constant", "--hours", "0.1", "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["policies"]["as-set"]["largest_lag_rows"] > 0


def test_compare_runs_every_policy(file: str) -> None:
    found = simulate(file, "--compare", "--json")
    assert {"autoscale", "declared", "flink", "dynamic-allocation", "oracle"} <= set(
        json.loads(found.stdout)["policies"]
    )


def test_pictures_are_drawn_into_a_folder(file: str, tmp_path: Path) -> None:
    found = simulate(file, "--policy", "fixed:executors=3", "--svg", str(tmp_path / "pictures"))
    assert found.exit_code == 0
    assert "<svg" in (tmp_path / "pictures" / "fixed-executors=3.svg").read_text()


def test_without_matplotlib_nothing_is_simulated(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = simulate(file, "--svg", str(tmp_path / "pictures"))
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr == (
        "spark-elastic simulate: matplotlib, which draws the pictures, is not installed: "
        "type `pip install 'spark-elastic[pictures]'`\n"
    )
    assert not (tmp_path / "pictures").exists()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Write the journal of two minutes of a query that has ended."""
    file, query = tmp_path / "app.jsonl", STATELESS.query
    events: list[dict[str, object]] = [
        {"event": encode_event(event)}
        for event in (
            ev.Snapshot(id="s1", at=0, application="a", application_name="test", spark_version="4.2.0"),
            ev.QuerySubmitted(id="s2", at=1, facts=STATELESS, run="r1"),
            *(
                ev.QueryProgress(
                    id=f"s{number + 2}", at=number * 10_000 + 400, query=query, run="r1", batch=number,
                    started=number * 10_000, duration_ms=400, input_rows=5_000, partitions=1,
                )
                for number in range(1, 13)
            ),
            ev.QueryTerminated(id="s15", at=120_400, query=query, run="r1"),
        )
    ]  # fmt: skip
    header = {"journal": 1, "version": __version__, "application": "app-1", "part": 0, "settings": {}}
    file.write_text("".join(json.dumps(line) + "\n" for line in (header, *events)))
    return file


def test_a_journal_is_a_scenario(journal: Path) -> None:
    found = simulate("--journal", str(journal), "--policy", "fixed:executors=1", "--json")
    assert found.exit_code == 0
    data = json.loads(found.stdout)
    assert list(data["policies"]) == ["recorded", "fixed:executors=1"]
    assert data["hours"] == pytest.approx(120.4 / 3_600, rel=0.01)
    assert data["policies"]["fixed:executors=1"]["largest_lag_rows"] >= 250


def test_a_recorded_query_with_another_load_has_another_life(journal: Path) -> None:
    """It keeps neither its recorded end nor the recorded durations of its micro-batches."""
    load = f"{STATELESS.name}=step:before=10,after=5000,at=3"
    found = simulate("--journal", str(journal), "--load", load, "--hours", "0.1", "--json")
    assert found.exit_code == 0
    as_set = json.loads(found.stdout)["policies"]["as-set"]
    # The load arrives after three minutes, when the recorded query had ended.
    assert as_set["largest_lag_rows"] > 100_000


def test_a_policy_file_counts_from_the_start(file: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nqueries: {counts: {upperBound: 1}}\n")
    load = "counts=constant:rate=200000"
    named = f"spark.elastic.policyFile={policy}"
    args = (file, "--load", load, "--policy", "autoscale", "--json")
    free, bound = (json.loads(simulate(*args, *more).stdout) for more in ((), ("--conf", named)))
    hours = [found["policies"]["autoscale"]["executor_hours"] for found in (free, bound)]
    assert hours[1] < hours[0]
    policy.write_text("version: 1\nqueries: {counts: {upperBound: none}}\n")
    wrong = simulate(*args, "--conf", named)
    assert wrong.exit_code == 2
    assert f"{policy}: line 2: " in wrong.stderr


@pytest.mark.parametrize(
    ("policy", "error"),
    [("Raises", "LookupError: no such model"), ("Exits", "SystemExit: 3")],
)
def test_a_policy_that_fails_is_named_with_what_it_raised_and_how_often(
    file: str, policy: str, error: str
) -> None:
    name = f"tests.unit.policies.examples:{policy}"
    found = simulate(file, "--policy", name, "--policy", f"autoscale,{name}", "--policy", "reactive")
    assert found.exit_code == 1
    assert [line.split()[0] for line in found.stdout.splitlines()[1:4]] == [
        name, f"autoscale,{name}", "reactive"
    ]  # fmt: skip
    said = [line for line in found.stderr.splitlines() if "has failed" in line]
    assert [line.partition(" has failed ")[0] for line in said] == [
        f"spark-elastic simulate: {name}", f"spark-elastic simulate: autoscale,{name}: {name}"
    ]  # fmt: skip
    assert all(re.search(rf"failed \d+ times: {error} \(examples.py, line \d+\)$", line) for line in said)
    assert list(json.loads(simulate(file, "--policy", name, "--json").stdout)["failures"]) == [name]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "nothing to simulate"),
        (("nowhere.yaml",), "nowhere.yaml"),
        (("--journal", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--journal", "nowhere.jsonl", "nowhere.yaml"), "nowhere.jsonl"),
        (("--load", "web"), "'web' is no name and value: type --load counts=web"),
        (("--load", "a=webb"), "no load 'webb'"),
        (("--load", "a=web", "--policy", "flinc"), "no policy 'flinc'"),
        (("--load", "a=web", "--conf", "spark.elastic.schedulerMode=x"), "reactive"),
        (("--load", "a=web", "--hours", "0"), "hours"),
        (("--load", "a=web", "--hours", "inf"), "'hours' must be <= 87840: inf"),
        (("--load", "a=web", "--hours", "nan"), "'hours' must be > 0: nan"),
        (("--load", "a=web", "--max-lag", "inf"), "'max_lag_s' must be <= 316224000: inf"),
        (("--load", "a=web", "--svg", f"{__file__}/x"), "test_simulate.py/x'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(args: tuple[str, ...], said: str) -> None:
    found = simulate(*args)
    assert found.exit_code == 2
    assert said in found.stderr
    assert "done" not in found.stderr
    assert "Traceback" not in found.stderr
