"""Tests of bounds of single queries in the settings, and of the defaults that adaptive mode changes."""

from __future__ import annotations

import pytest

from spark_elastic.core.bounds.declared import WantedBounds, WantedSharing
from spark_elastic.core.keys import rescaling
from spark_elastic.settings import PREFIX, SettingsError, keys, load


def bounds(**conf: str) -> dict[str, str]:
    return {f"{PREFIX}query.{name.replace('__', '.')}": value for name, value in conf.items()}


def test_both_bounds_or_one() -> None:
    conf = bounds(counts__lowerBound="2", counts__upperBound="6", orders__upperBound=" 4 ")
    assert load(conf).bounds == {
        "counts": WantedBounds(lower=2, upper=6),
        "orders": WantedBounds(lower=-1, upper=4),
    }


def test_a_target_between_them_or_alone() -> None:
    conf = bounds(counts__lowerBound="2", counts__upperBound="6", counts__target="4", orders__target="3")
    settings = load(conf)
    assert settings.bounds == {
        "counts": WantedBounds(lower=2, upper=6, target=4),
        "orders": WantedBounds(target=3),
    }
    assert load(settings.as_conf()) == settings


def test_sources_have_bounds_of_their_own() -> None:
    conf = bounds(counts__upperBound="6")
    conf[f"{PREFIX}query.eu.counts.source-0.lowerBound"] = "2"
    conf[f"{PREFIX}query.eu.counts.source-1.upper-bound"] = "4"
    settings = load(conf)
    assert settings.bounds == {"counts": WantedBounds(upper=6)}
    assert settings.source_bounds == {
        "eu.counts": {"source-0": WantedBounds(lower=2), "source-1": WantedBounds(upper=4)}
    }
    assert load(settings.as_conf()) == settings
    conf[f"{PREFIX}query.eu.counts.source-1.lowerBound"] = "5"
    with pytest.raises(SettingsError, match=r"set spark\.elastic\.query\.eu\.counts\.source-1\.lowerBound=4"):
        load(conf)


def test_a_name_may_have_dots_and_dashes() -> None:
    name = "eu-west.order-counts"
    settings = load({f"{PREFIX}query.{name}.upper-bound": "3"})
    assert settings.bounds == {name: WantedBounds(upper=3)}
    assert load(settings.as_conf()) == settings


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        ({"counts__upperBound": "many"}, "'many', allowed is a whole number from 1 to 32768, or -1"),
        ({"counts__upperBound": "0"}, "'0', allowed is a whole number from 1 to 32768, or -1"),
        ({"counts__upper": "3"}, "set spark.elastic.query.counts.upperBound"),
        ({"counts__savepoint": " "}, "query.counts.savepoint is '', allowed is a folder: set"),
        (
            {"counts__priority": "1.5"},
            "'1.5', allowed is a whole number from -1000000 to 1000000: set ",
        ),
        ({"counts__weight": "0"}, "'0', allowed is a number above 0"),
        ({"counts__slotSharingGroup": " "}, "is '', allowed is a name of up to 60 letters"),
        ({"counts__source-0__weight": "2"}, "for the whole query: set spark.elastic.query.counts.weight=2"),
        ({"upperBound": "3"}, "set spark.elastic.query.NAME.upperBound"),
        ({"counts__lowerBound": "9", "counts__upperBound": "3"}, "allowed is at most the upper bound, '3'"),
        (
            {"counts__target": "9", "counts__upperBound": "3"},
            "query.counts.target is '9', allowed is what its bounds allow: "
            "set spark.elastic.query.counts.target=3",
        ),
        ({"counts__source-0__target": "2"}, "for the whole query: set spark.elastic.query.counts.target=2"),
    ],
)
def test_what_is_wrong_is_said(conf: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        load(bounds(**conf))
    assert words in str(refusal.value)


def test_how_a_query_shares_slots() -> None:
    conf = bounds(counts__priority="-3", counts__weight="0.00001", orders__slotSharingGroup="etl")
    conf[f"{PREFIX}query.eu.orders.source-0.slot-sharing-group"] = "kafka"
    conf[f"{PREFIX}query.eu.orders.weight"] = "2"
    settings = load(conf)
    assert settings.sharing == {
        "counts": WantedSharing(priority=-3, weight=0.00001),
        "orders": WantedSharing(group="etl"),
        "eu.orders": WantedSharing(weight=2.0, groups={"source-0": "kafka"}),
    }
    assert load(settings.as_conf()) == settings
    assert settings.core().sharing == settings.sharing


def test_a_savepoint_to_start_from_is_a_setting_of_a_query() -> None:
    conf = bounds(counts__savepoint="hdfs://namenode/savepoints/savepoint-7-1f2b10aa", counts__upperBound="4")
    assert load(conf).bounds == {"counts": WantedBounds(upper=4)}


def test_adaptive_mode_has_defaults_of_its_own_where_nothing_is_set() -> None:
    adaptive = load({f"{PREFIX}schedulerMode": "adaptive"})
    assert adaptive[rescaling.RESOURCE_WAIT_MS] == 300_000
    assert adaptive[rescaling.SUBMISSION_STABILIZATION_MS] == 10_000
    assert adaptive[rescaling.EXPLICIT_PARALLELISM] == "upperBound"
    assert adaptive[rescaling.STRATEGY] == "exponential-delay"
    assert load({})[rescaling.STRATEGY] == "none"
    chosen = load({f"{PREFIX}schedulerMode": "adaptive", f"{PREFIX}explicitParallelism": "fixed"})
    assert chosen[rescaling.EXPLICIT_PARALLELISM] == "fixed"
    assert {key.name for key in keys() if key.adaptive != key.default} == {
        "adaptiveScheduler.submission.resourceWaitTimeout",
        "adaptiveScheduler.submission.resourceStabilizationTimeout",
        "explicitParallelism",
        "restartStrategy.type",
    }


RESTART = "restartStrategy.fixedDelay.delay"


def test_settings_of_a_query_are_read_in_both_spellings_whatever_its_name_and_written_back() -> None:
    settings = load(
        {
            "spark.elastic.query.orders.eu.restart-strategy.fixed-delay.delay": "90s",
            "spark.elastic.query.orders.eu.restartStrategy": "fixeddelay",
            "spark.elastic.query.or*.schedulerMode": "OFF",
            "spark.elastic.query.or*.stateStore": "unchanged",
            "spark.elastic.query.or*.adaptiveScheduler.scaling-interval.max": "none",
        }
    )
    assert settings.queries == {
        "orders.eu": {RESTART: "90s", "restartStrategy.type": "fixed-delay"},
        "or*": {
            "schedulerMode": "off",
            "stateStore": "unchanged",
            "adaptiveScheduler.scalingInterval.max": "none",
        },
    }
    assert load(settings.as_conf()) == settings
    assert settings.core().queries == settings.queries


@pytest.mark.parametrize("mode", ["reactive", "adaptive"])
def test_what_the_application_has_left_at_the_default_of_its_mode_is_still_so_when_it_is_read_back(
    mode: str,
) -> None:
    for more in ({}, {"spark.elastic.restartStrategy.type": "none"}):
        settings = load({"spark.elastic.schedulerMode": mode, **more})
        assert load(settings.as_conf()) == settings
        assert load(settings.as_conf()).core() == settings.core()
        assert ("restartStrategy.type" in settings.core().texts) is bool(more)


@pytest.mark.parametrize(
    ("conf", "error"),
    [
        (
            {"orders.journal.dir": "/x"},
            "spark.elastic.query.orders.journal.dir is for one query, allowed is journal.dir for the whole "
            "application only: set spark.elastic.journal.dir=/x",
        ),
        (
            {"orders.adaptiveScheduler.maxConcurrentRescales": "2"},
            "spark.elastic.query.orders.adaptiveScheduler.maxConcurrentRescales is for one query, allowed is "
            "adaptiveScheduler.maxConcurrentRescales for the whole application only: "
            "set spark.elastic.adaptiveScheduler.maxConcurrentRescales=2",
        ),
        (
            {"orders.maxParallelism": "0"},
            "spark.elastic.query.orders.maxParallelism is '0', allowed is a whole number from 1 to 32768: "
            "set spark.elastic.query.orders.maxParallelism=32768",
        ),
        (
            {"orders.source-0.maxParallelism": "4"},
            "spark.elastic.query.orders.source-0.maxParallelism is of a source, allowed is one for the whole "
            "query: set spark.elastic.query.orders.maxParallelism=4",
        ),
        (
            {"orders.restartStrategy.fixedDelay.dely": "4"},
            "spark.elastic.query.orders.restartStrategy.fixedDelay.dely is not a setting, those of a query "
            "are lowerBound, upperBound, target, priority, weight, slotSharingGroup, savepoint, "
            "schedulerMode, policy, explicitParallelism, stateStore, maxParallelism, adaptiveScheduler.…, "
            "schedule.…, autoscale.… and restartStrategy.…: "
            "set spark.elastic.query.orders.restartStrategy.fixedDelay.delay",
        ),
        (
            {f"orders.{RESTART}": "4s", "orders.restart-strategy.fixed-delay.delay": "5s"},
            "spark.elastic.query.orders.restart-strategy.fixed-delay.delay is '5s' and "
            f"spark.elastic.query.orders.{RESTART} is '4s', but they are one setting: "
            f"keep only spark.elastic.query.orders.{RESTART}=5s",
        ),
        (
            {
                "orders.adaptiveScheduler.executing.cooldownAfterRescaling": "1min",
                "orders.adaptiveScheduler.scalingInterval.max": "10s",
            },
            "spark.elastic.query.orders.adaptiveScheduler.scalingInterval.max is '10s', allowed is at least "
            "the cooldown after rescaling, '1min': "
            "set spark.elastic.query.orders.adaptiveScheduler.scalingInterval.max=1min",
        ),
        (
            {"or*.savepoint": "/s"},
            "spark.elastic.query.or*.savepoint is for a pattern of names, allowed is one name, since a "
            "savepoint is of one query: set spark.elastic.query.NAME.savepoint=/s",
        ),
    ],
)
def test_what_no_query_can_have_is_refused_with_what_to_type(conf: dict[str, str], error: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load({f"spark.elastic.query.{name}": text for name, text in conf.items()})
    assert raised.value.errors == (error,)


def test_where_the_application_is_off_no_query_can_have_another_mode() -> None:
    off = {"spark.elastic.schedulerMode": "off"}
    assert load({**off, "spark.elastic.query.*.schedulerMode": "off"}).queries
    with pytest.raises(SettingsError) as raised:
        load({**off, "spark.elastic.query.a.schedulerMode": "adaptive"})
    assert raised.value.errors == (
        "spark.elastic.query.a.schedulerMode is 'adaptive' while spark.elastic.schedulerMode is off, allowed "
        "is off then: set spark.elastic.schedulerMode=adaptive, and "
        "spark.elastic.query.*.schedulerMode=off for the others",
    )
