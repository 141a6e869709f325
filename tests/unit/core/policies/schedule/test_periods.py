"""Tests of windows and excluded periods as users type them, and of the errors about invalid ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.keys import policies
from spark_elastic.core.keys.periods import ExcludedPeriod, Window
from spark_elastic.policy_file import PolicyFileError, load_policy
from spark_elastic.settings import SettingsError, load

BASE = {"spark.elastic.schedulerMode": "adaptive", "spark.elastic.policy": "schedule,autoscale"}
WINDOWS = "spark.elastic.schedule.windows"
EXCLUDED = "spark.elastic.schedule.excludedPeriods"
DAY = "0 8 * * MON-FRI for 10h name=day lowerBound=4 upperBound=32 minExecutors=6"


def errors(**settings: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load({**BASE, **{f"spark.elastic.schedule.{name}": text for name, text in settings.items()}})
    return caught.value.errors


def test_windows_have_a_cron_expression_a_duration_and_limits() -> None:
    found = load({**BASE, WINDOWS: f"{DAY}; 0 22 * * * for 8h upperbound=4"})[policies.WINDOWS]
    assert found == (
        Window(
            cron="0 8 * * MON-FRI", duration_ms=36_000_000, name="day", lower=4, upper=32, min_executors=6
        ),
        Window(cron="0 22 * * *", duration_ms=28_800_000, upper=4),
    )
    assert [one.shown for one in found] == ["day", "'0 22 * * * for 8h'"]


def test_excluded_periods_may_allow_scaling_up() -> None:
    found = load({**BASE, EXCLUDED: "0 18 24 12 * for 2d name=xmas; 0 12 * * * for 30min allow=scaleUp"})
    assert found[policies.EXCLUDED] == (
        ExcludedPeriod(cron="0 18 24 12 *", duration_ms=172_800_000, name="xmas"),
        ExcludedPeriod(cron="0 12 * * *", duration_ms=1_800_000, allows_up=True),
    )


def test_a_query_can_have_windows_of_its_own_and_none() -> None:
    own = {f"spark.elastic.query.orders.{name}": text for name, text in [("schedule.windows", "none")]}
    settings = load({**BASE, WINDOWS: DAY, **own})
    assert settings.queries == {"orders": {"schedule.windows": "none"}}
    assert load(settings.as_conf()) == settings


FIELDS = st.fixed_dictionaries(
    {"lower": st.none() | st.integers(1, 9), "upper": st.none() | st.integers(9, 99)},
    optional={"name": st.sampled_from(["", "day", "a.b-c"]), "min_executors": st.integers(0, 9)},
)


@given(
    fields=FIELDS.filter(lambda one: any(value is not None for key, value in one.items() if key != "name"))
)
def test_what_is_written_is_read_back(fields: dict[str, object]) -> None:
    one = Window(cron="*/5 1-3,7 * * MON#2", duration_ms=60_000, **fields)  # type: ignore[arg-type]
    kind = policies.WINDOWS.kind
    assert kind.parse(kind.format((one,))) == (one,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "0 25 * * * for 1h lowerBound=2",
            "which has '0 25 * * *' with no valid hour, allowed is a cron expression of five fields: minute, "
            "hour, day of the month, month, day of the week: set {name}=0 8 * * MON-FRI for 1h lowerBound=2",
        ),
        (
            "0 8 * * for 1h lowerBound=2",
            "which has '0 8 * *' with 4 fields, allowed is a cron expression of five fields: minute, hour, "
            "day of the month, month, day of the week: set {name}=0 8 * * MON-FRI for 1h lowerBound=2",
        ),
        (
            "0 8 * * * lowerBound=2",
            "which has no duration in '0 8 * * * lowerBound=2', allowed is CRON for DURATION: "
            "set {name}=0 8 * * * for 1h lowerBound=2",
        ),
        (
            "0 8 * * * for 8d lowerBound=2",
            "which has 'for 8d', allowed is a duration from 1min to 7d, without a space: "
            "set {name}=0 8 * * * for 1h lowerBound=2",
        ),
        (
            "0 8 * * * for 1h",
            "which has no limit in '0 8 * * * for 1h', allowed is at least one of lowerBound, upperBound, "
            "minExecutors: set {name}=0 8 * * * for 1h lowerBound=1",
        ),
        (
            "0 8 * * * for 1h lowerBound=0",
            "which has lowerBound=0 in '0 8 * * * for 1h lowerBound=0', allowed is a whole number from 1 to "
            "32768: set {name}=0 8 * * * for 1h lowerBound=1",
        ),
        (
            "0 8 * * * for 1h lowerBound=9 upperBound=4",
            "which has lowerBound=9 in '0 8 * * * for 1h lowerBound=9 upperBound=4', allowed is up to its "
            "upperBound, 4: set {name}=0 8 * * * for 1h lowerBound=4 upperBound=4",
        ),
        (
            "0 8 * * * for 1h lower=4",
            "which has 'lower=4' in '0 8 * * * for 1h lower=4', allowed is name, lowerBound, upperBound, "
            "minExecutors, each once with = and a value: set {name}=0 8 * * MON-FRI for 10h lowerBound=4",
        ),
        (
            "0 8 * * * for 1h lowerBound=1; 0 9 * * * for 9d lowerBound=2",
            "which has 'for 9d', allowed is a duration from 1min to 7d, without a space: "
            "set {name}=0 8 * * * for 1h lowerBound=1; 0 9 * * * for 1h lowerBound=2",
        ),
        (
            "0 8 * * * for 1h name=a lowerBound=1; 0 9 * * * for 1h name=a lowerBound=2",
            "which has the name a twice, allowed is each name once: set {name}=0 8 * * MON-FRI for 10h "
            "lowerBound=4",
        ),
    ],
)
def test_a_window_that_cannot_be_is_refused_with_what_is_wrong_in_it(text: str, said: str) -> None:
    assert errors(windows=text) == (f"{WINDOWS} is '{text}', {said.format(name=WINDOWS)}",)


def test_other_refusals_say_what_to_type() -> None:
    text = "0 8 * * * for 1h allow=down"
    assert errors(excludedPeriods=text) == (
        f"{EXCLUDED} is '{text}', which has allow=down in '{text}', allowed is allow=scaleUp: "
        f"set {EXCLUDED}=0 8 * * * for 1h allow=scaleUp",
    )
    for zone in ("Europe", "europe/berlin", "../etc/passwd", "CEST5"):
        assert errors(zone=zone) == (
            f"spark.elastic.schedule.zone is '{zone}', allowed is the name of a time zone in the IANA "
            "database, such as UTC or Europe/Berlin: set spark.elastic.schedule.zone=UTC",
        )


def test_a_lead_time_of_more_than_an_hour_is_refused() -> None:
    assert errors(leadTime="61min") == (
        "spark.elastic.schedule.leadTime is '61min', allowed is a duration such as 500ms, 30s or 5min, at "
        "most 1h, or none: set spark.elastic.schedule.leadTime=30s",
    )


def test_windows_that_no_policy_looks_at_are_refused() -> None:
    with pytest.raises(SettingsError) as caught:
        load({**BASE, "spark.elastic.policy": "autoscale", WINDOWS: "0 8 * * * for 1h lowerBound=2"})
    assert caught.value.errors == (
        f"{WINDOWS} is '0 8 * * * for 1h lowerBound=2' while spark.elastic.policy is 'autoscale', "
        "allowed is a chain with schedule then: set spark.elastic.policy=schedule,autoscale",
    )


def test_the_policy_file_has_them_too() -> None:
    text = "version: 1\nqueries:\n  orders:\n    schedule.windows: 0 8 * * * for 1h lowerBound=2\n"
    assert load_policy(text).settings == {"orders": {"schedule.windows": "0 8 * * * for 1h lowerBound=2"}}
    with pytest.raises(PolicyFileError) as caught:
        load_policy(text.replace("0 8", "0 28"))
    (error,) = caught.value.errors
    assert error.startswith("line 4: queries.orders.'schedule.windows' is '0 28 * * * for 1h lowerBound=2', ")
    assert "which has '0 28 * * *' with no valid hour" in error
    assert error.endswith("write schedule.windows: 0 8 * * MON-FRI for 1h lowerBound=2")
