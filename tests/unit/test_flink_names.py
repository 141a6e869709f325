"""Tests of Flink's own names of settings: which of them are ours, and the messages about the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_elastic.core.keys import KEYS, NAMES
from spark_elastic.core.keys.flink import _ROOTS, OPTIONS, Option
from spark_elastic.core.keys.key import PREFIX, camel, kebab
from spark_elastic.settings import SettingsError, load

PAGE = Path(__file__).parents[2] / "docs" / "migration.md"
OURS = [option for option in OPTIONS if option.key is not None]
OTHERS = [option for option in OPTIONS if option.key is None]
# As written in Flink's documentation.
VALUES = {
    "scheduler-mode": "REACTIVE",
    "jobmanager.adaptive-scheduler.submission.resource-wait-timeout": "5 min",
    "jobmanager.adaptive-scheduler.rescale-trigger.max-checkpoint-failures": "3",
    "slot.idle.timeout": "50000",
    "pipeline.max-parallelism": "128",
    "restart-strategy.type": "exponentialdelay",
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": "2147483647",
    "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task": "16 mb",
    "execution.batch.adaptive.auto-parallelism.enabled": "false",
    "execution.checkpointing.savepoint-dir": "hdfs:///flink/savepoints",
    "job.autoscaler.utilization.target": "0.7",
    "job.autoscaler.catch-up.duration": "30 min",
}


def refusal(**conf: str) -> str:
    with pytest.raises(SettingsError) as refused:
        load(conf)
    return str(refused.value)


@pytest.mark.parametrize("option", OURS, ids=lambda option: option.name)
def test_each_of_its_names_sets_what_the_page_says(option: Option) -> None:
    assert option.key is not None
    text = VALUES.get(option.name, option.key.kind.example)
    wanted = option.key.kind.parse(text)
    # Avoid conflicts with defaults, which are not tested here.
    more = {f"{PREFIX}schedulerMode": "adaptive"} if option.name != "scheduler-mode" else {}
    if option.name.endswith(("backoff", "scaling-interval.max")):
        more |= {f"{PREFIX}restart-strategy.exponential-delay.max-backoff": "1 h"}
    for name in (option.name, *option.older, camel(option.name)):
        conf = {**more, PREFIX + name: text}
        if option.name.endswith("exponential-delay.max-backoff"):
            conf = {PREFIX + name: text}
        assert load(conf)[option.key] == wanted


@pytest.mark.parametrize("option", OTHERS, ids=lambda option: option.name)
def test_what_is_no_setting_is_an_error_that_names_the_page(option: Option) -> None:
    for name in (option.name, *option.older):
        said = refusal(**{PREFIX + name.replace("*", "some"): "1"})
        assert f"{PREFIX}{name.replace('*', 'some')} is a Flink option and not a setting here" in said
        assert "docs/migration.md" in said
        assert "`" not in said
    assert (f"{option.instead.split('`')[1]}" if "`" in option.instead else "takes its place") in said


def test_so_is_one_of_which_nothing_is_known_but_how_it_begins() -> None:
    said = refusal(**{"spark.elastic.taskmanager.numberOfTaskSlots": "4"})
    assert "is a Flink option and not a setting here, nothing takes its place" in said
    assert not [key.name for key in KEYS if kebab(key.name).partition(".")[0] in _ROOTS]


def test_a_slip_in_one_of_its_names_is_no_unknown_option() -> None:
    said = refusal(**{"spark.elastic.jobmanager.adaptive-scheduler.executing.cooldown-after-rescalin": "4"})
    assert "the nearest is spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling" in said


def test_two_names_of_one_setting_may_say_the_same_and_not_two_things() -> None:
    ours, flinks = "spark.elastic.maxParallelism", "spark.elastic.pipeline.max-parallelism"
    assert load({ours: "64", flinks: "64"})[NAMES["maxParallelism"]] == 64
    said = refusal(**{ours: "64", flinks: "128"})
    assert f"{ours} is '64' and {flinks} is '128', but they are one setting: keep only {ours}=64" in said


def test_a_query_has_them_under_its_name() -> None:
    name = "spark.elastic.query.counts.jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling"
    assert load({name: "1 min"}).queries == {
        "counts": {"adaptiveScheduler.executing.cooldownAfterRescaling": "1min"}
    }


def test_no_name_is_that_of_two_settings() -> None:
    names = [name for option in OPTIONS for name in (option.name, *option.older)]
    assert len(set(names)) == len(names)
    assert all(NAMES[camel(name)] is option.key for option in OURS for name in (option.name, *option.older))


def test_the_page_has_each_of_them() -> None:
    table = (
        PAGE.read_text(encoding="utf-8").partition("<!-- options -->")[2].partition("<!-- /options -->")[0]
    )
    first = [re.findall("`(.*?)`", row.split("|")[1])[0] for row in table.strip().splitlines()[2:]]
    assert first == [option.name for option in OPTIONS]
