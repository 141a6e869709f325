"""Tests of `spark-elastic advise`, as a user calls it, on recorded runs of plain Spark."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spark_elastic_tools.cli.main import cli
from tests.unit.lab.advice.facts import RECORDED

STREAM, BATCH = str(RECORDED / "stream.gz"), str(RECORDED / "batch.gz")


def advise(*args: str) -> Result:
    return CliRunner().invoke(cli, ["advise", *args])


@pytest.mark.long
def test_logs_are_described_for_people_and_programs(tmp_path: Path) -> None:
    text = advise(STREAM, BATCH, "--price", "0.1")
    assert text.exit_code == 0
    for words in ("Query counts", "as it ran", "reactive", "spark-defaults.conf:", "200 tasks for"):
        assert words in text.stdout
    page = tmp_path / "page.html"
    data = advise(STREAM, BATCH, "--json", "--html", str(page), "--trigger", "counts=1s", "--max-lag", "20")
    stream, batch = json.loads(data.stdout)
    assert stream["queries"][0]["triggerMs"] == 1_000
    assert stream["whatIf"]["objectiveSeconds"] == 20
    assert batch["whatIf"] is None
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.long
def test_the_same_log_gives_the_same_advice() -> None:
    first, second = (advise(STREAM, "--json").stdout for _ in range(2))
    assert first == second


def test_what_is_wrong_is_one_sentence_with_what_to_type(tmp_path: Path) -> None:
    for args, words in {
        (str(tmp_path / "none"),): "none is not there: name an event log",
        (BATCH, "--trigger", "counts"): "'counts' is no query and interval: type --trigger counts=10",
        (BATCH, "--trigger", "=10"): "'=10' is no query and interval",
        (BATCH, "--trigger", "counts=-1"): "'counts=-1' is no query and interval",
        (BATCH, "--trigger", "counts=10"): "there is no such query, those in the log are: none",
        (BATCH, "--html", str(tmp_path / "no" / "page.html")): "cannot be written: No such file",
        (BATCH, "--header", "x"): "'x' is not a header",
    }.items():
        found = advise(*args)
        assert found.exit_code == 2, args
        assert words in found.stderr


def test_a_log_without_a_time_is_too_little(tmp_path: Path) -> None:
    file = tmp_path / "app-1"
    file.write_text('{"Event":"SparkListenerLogStart","Spark Version":"4.2.0"}\n')
    found = advise(str(file))
    assert found.exit_code == 1
    assert found.stderr == ("spark-elastic advise: too little to go on: app-1: it has no event with a time\n")
    file.write_text("")
    found = advise(str(file))
    assert found.exit_code == 2
    assert "has no event of Spark's" in found.stderr


def test_an_event_in_another_form_names_the_versions(tmp_path: Path) -> None:
    file = tmp_path / "app-1"
    file.write_text('{"Event":"SparkListenerApplicationStart","Name":"x"}\n')
    found = advise(str(file))
    assert found.exit_code == 2
    assert "in a form that Spark 3.5 to 4.3 do not write (KeyError('App Name'))" in found.stderr


@pytest.mark.long
def test_every_cut_of_a_log_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    text = gzip.decompress(Path(STREAM).read_bytes())
    file = tmp_path / "app-1.inprogress"
    for share in (0.05, 0.2, 0.5, 0.97):
        file.write_bytes(text[: int(len(text) * share)])
        found = advise(str(file), "--json")
        assert found.exit_code in (0, 1), found.stderr
        if found.exit_code == 0:
            assert not json.loads(found.stdout)[0]["ended"]
