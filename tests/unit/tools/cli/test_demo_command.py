"""Tests of `spark-elastic demo` as far as it runs without a cluster."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from spark_elastic_tools.cli import demo
from spark_elastic_tools.cli.main import cli


def test_another_mode_is_refused_with_those_that_there_are() -> None:
    result = CliRunner().invoke(cli, ["demo", "--mode", "fast"])
    assert result.exit_code == 2
    said = "there is no mode 'fast', only reactive, adaptive, autoscale: type --mode autoscale, say"
    assert said in result.output


def test_a_machine_without_what_is_needed_is_told_so_and_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo, "problems", lambda: ["no Java found"])
    result = CliRunner().invoke(cli, ["demo", "--mode", "autoscale"])
    assert (result.exit_code, result.output) == (2, "spark-elastic demo: no Java found\n")


def test_modes_are_completed() -> None:
    completion = ShellComplete(cli, {}, "spark-elastic", "_SPARK_ELASTIC_COMPLETE")
    found = completion.get_completions(["demo", "--mode"], "a")
    assert [item.value for item in found] == ["adaptive", "autoscale"]
