"""Tests of the demonstration's plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic.settings import load
from spark_elastic_lab.demo import plugin
from spark_elastic_lab.demo.steps import PLAYS, Deed, Mode, Trend


@pytest.fixture(autouse=True)
def jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A jar without a build."""
    monkeypatch.setattr(plugin, "jar_path", lambda: tmp_path / "spark-elastic_4.2_2.13-0.1.0.jar")


@pytest.mark.parametrize("mode", Mode)
def test_each_mode_has_a_play_that_begins_with_a_start_and_has_an_end(mode: Mode) -> None:
    play = PLAYS[mode]
    times = [step.at_s for step in play.steps]
    assert play.steps[0].deed is Deed.START
    assert times == sorted(times)
    assert times[0] == 0 < times[-1] < play.end_s
    assert len({step.title for step in play.steps}) == len(play.steps)


@pytest.mark.parametrize("mode", Mode)
def test_each_step_can_be_reached_with_the_workers_that_there_are(mode: Mode) -> None:
    cores = sum(PLAYS[mode].workers)
    for step in PLAYS[mode].steps:
        cores += {Deed.ADD: 1, Deed.KILL: -1, Deed.DECOMMISSION: -1}.get(step.deed, 0)
        assert cores > 1 if isinstance(step.slots, Trend) else cores >= step.slots


def test_the_load_doubles_and_falls_below_what_it_was() -> None:
    play = PLAYS[Mode.AUTOSCALE]
    assert play.interval_s is not None
    paces = [step.interval_s for step in play.steps if step.deed is Deed.LOAD]
    assert paces == [play.interval_s / 2, 2 * play.interval_s]
    assert [step.slots for step in play.steps] == [Trend.FEWER, Trend.MORE, Trend.FEWER]


@pytest.mark.parametrize("mode", Mode)
def test_the_settings_of_a_mode_are_settings(mode: Mode, tmp_path: Path) -> None:
    conf = plugin.demo_conf(tmp_path / "journal", mode)
    settings = load({key: value for key, value in conf.items() if key.startswith("spark.elastic.")})
    assert settings.core().mode == ("reactive" if mode is Mode.REACTIVE else "adaptive")
    assert settings.core().measures is (mode is Mode.AUTOSCALE)


def test_only_who_names_a_policy_file_gets_one(tmp_path: Path) -> None:
    key = "spark.elastic.policyFile"
    assert key not in plugin.demo_conf(tmp_path, Mode.AUTOSCALE)
    assert plugin.demo_conf(tmp_path, Mode.ADAPTIVE, tmp_path / "p.yaml")[key] == str(tmp_path / "p.yaml")
