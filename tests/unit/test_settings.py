"""Tests of settings: what is accepted, and the errors about the rest."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import attrs
import pytest

from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.bounds.declared import WantedBounds, WantedSharing
from spark_elastic.core.keys import (
    OF_QUERY,
    application,
    batch,
    policies,
    rescaling,
)
from spark_elastic.core.keys.key import Key
from spark_elastic.core.keys.periods import ExcludedPeriod, Window
from spark_elastic.core.settings import CoreSettings
from spark_elastic.settings import PREFIX, Settings, SettingsError, keys, load, markdown_table

COOLDOWN = "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling"


def errors_of(conf: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load(conf)
    return caught.value.errors


def test_nothing_set_gives_the_defaults_of_the_core() -> None:
    assert load({"spark.master": "local[2]"}) == Settings()
    assert Settings().core() == CoreSettings()


def test_batch_stages_are_decided_about_as_the_keys_say() -> None:
    assert load({}).batch() == BatchSettings()
    prefix = "spark.elastic.batch."
    found = load(
        {
            f"{prefix}preset": "flink",
            f"{prefix}auto-parallelism.min-parallelism": "2",
            f"{prefix}autoParallelism.maxParallelism": "9",
            f"{prefix}autoParallelism.avgDataVolumePerTask": "32m",
            f"{prefix}initialCount.enabled": "false",
            f"{prefix}ranges.enabled": "false",
            "spark.elastic.explicitParallelism": "fixed",
        }
    )
    assert found.batch() == BatchSettings(
        preset="flink",
        explicit_parallelism="fixed",
        initial_enabled=False,
        ranges_enabled=False,
        min_parallelism=2,
        max_parallelism=9,
        avg_data_volume_per_task=32 << 20,
    )
    assert found.core().decision_wait_ms == 200


def test_with_auto_parallelism_off_nothing_is_asked() -> None:
    found = load({"spark.elastic.batch.autoParallelism.enabled": "false"})
    assert (found.batch().enabled, found.core().decision_wait_ms) == (False, 0)


def test_bounds_of_batch_stages_that_contradict_each_other_are_refused() -> None:
    prefix = "spark.elastic.batch.autoParallelism."
    assert errors_of({f"{prefix}minParallelism": "9", f"{prefix}maxParallelism": "8"}) == (
        f"{prefix}maxParallelism is '8', allowed is at least {prefix}minParallelism, '9': "
        f"set {prefix}maxParallelism=9",
    )


def test_every_field_of_the_core_is_reached_by_some_key() -> None:
    values: dict[Key[Any], Any] = {
        rescaling.MODE: "adaptive",
        rescaling.WARM_UP_MS: 1,
        rescaling.START_WAIT_MS: 3,
        rescaling.RESOURCE_WAIT_MS: 4,
        rescaling.SUBMISSION_STABILIZATION_MS: 5,
        rescaling.COOLDOWN_MS: 6,
        rescaling.EXECUTING_STABILIZATION_MS: 7,
        rescaling.MAX_DELAY_MS: 8,
        rescaling.MAX_CHECKPOINT_FAILURES: 9,
        rescaling.MIN_PARALLELISM_INCREASE: 10,
        rescaling.MAX_CONCURRENT_RESCALES: 110,
        rescaling.PREPARE_MOVES: False,
        rescaling.MAX_COPY_TASKS: 3,
        rescaling.MAX_COPY_RATE: 50 << 20,
        rescaling.SCALING_INTERVAL_MAX_MS: 11,
        rescaling.RESCALE_POLICY: "always",
        rescaling.EXPLICIT_PARALLELISM: "fixed",
        rescaling.STATE_STORE: "unchanged",
        rescaling.CONVERT: "never",
        rescaling.KEEP_ORIGINAL_MS: 17,
        rescaling.MAX_PARALLELISM: 12,
        rescaling.STRATEGY: "fixed-delay",
        application.SLOT_IDLE_MS: 13,
        application.SAVEPOINT_DIR: "/s",
        application.SAVEPOINTS_KEPT: 16,
        batch.DECISION_WAIT_MS: 14,
        batch.DIVIDE_ORDERED: True,
        application.HISTORY_SIZE: 15,
        application.ADVISE_ONLY: True,
        policies.POLICY: ("schedule", "autoscale"),
        policies.ZONE: "Europe/Berlin",
        policies.WINDOWS: (Window(cron="0 8 * * *", duration_ms=60_000, lower=2),),
        policies.EXCLUDED: (ExcludedPeriod(cron="0 8 * * *", duration_ms=60_000),),
        policies.LEAD_MS: 24,
        policies.LOAD: 0.5,
        policies.BAND: 0.2,
        policies.MAX_LAG_MS: 17,
        policies.CATCH_UP_MS: 18,
        policies.BACKPRESSURE: False,
        policies.WINDOW_MS: 19,
        policies.MOST_DOWN: 0.4,
        policies.BATCH_GAIN: 0.7,
        policies.MIN_EXECUTORS: 20,
        policies.MAX_EXECUTORS: 21,
        policies.QUOTA_CORES: 22,
        policies.QUOTA_MEMORY: 23,
    }
    changed = Settings(
        values=values,
        bounds={"counts": WantedBounds(upper=4)},
        source_bounds={"counts": {"source-0": WantedBounds(upper=4)}},
        sharing={"counts": WantedSharing(priority=1)},
        queries={"counts": {"maxParallelism": "4"}},
        chosen=frozenset({rescaling.RESOURCE_WAIT_MS}),
    ).core()
    assert [
        field.name
        for field in attrs.fields(CoreSettings)
        if getattr(changed, field.name) == getattr(CoreSettings(), field.name)
    ] == []


def test_a_policy_in_reactive_mode_is_refused() -> None:
    assert errors_of({"spark.elastic.policy": "autoscale"}) == (
        "spark.elastic.policy is 'autoscale' while spark.elastic.schedulerMode is reactive, allowed is "
        "declared then: set spark.elastic.schedulerMode=adaptive",
    )
    adaptive = {"spark.elastic.schedulerMode": "adaptive", "spark.elastic.policy": "autoscale"}
    assert load(adaptive).core().measures
    assert not load({"spark.elastic.schedulerMode": "adaptive"}).core().measures


def test_fewer_executors_at_most_than_at_least_are_refused() -> None:
    assert errors_of({"spark.elastic.minExecutors": "4", "spark.elastic.maxExecutors": "3"}) == (
        "spark.elastic.maxExecutors is '3', allowed is at least spark.elastic.minExecutors, '4': "
        "set spark.elastic.maxExecutors=4",
    )


def test_flinks_spelling_is_accepted_for_every_key() -> None:
    short = "spark.elastic.adaptive-scheduler.submission.resource-wait-timeout"
    assert load({short: "5 min"})[rescaling.RESOURCE_WAIT_MS] == 300_000
    assert load({"spark.elastic.scheduler-mode": "REACTIVE"})[rescaling.MODE] == "reactive"
    assert (
        load({"spark.elastic.explicit-parallelism": "upper-bound"})[rescaling.EXPLICIT_PARALLELISM]
        == "upperBound"
    )
    for key in keys():
        kebab = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in key.name)
        text = key.kind.example
        base = {}
        if key.name.startswith("schedule."):
            base = {"spark.elastic.schedulerMode": "adaptive", "spark.elastic.policy": "schedule"}
        found = load({**base, PREFIX + kebab: text})
        assert found == load({**base, key.full_name: text})
        assert found[key] == key.kind.parse(text)


def test_older_names_still_work() -> None:
    conf = {
        "spark.elastic.adaptiveScheduler.scalingInterval.min": "1s",
        "spark.elastic.adaptive-scheduler.resource-wait-timeout": "2s",
        "spark.elastic.adaptiveScheduler.resourceStabilizationTimeout": "3s",
    }
    settings = load(conf)
    assert settings[rescaling.COOLDOWN_MS] == 1_000
    assert settings[rescaling.RESOURCE_WAIT_MS] == 2_000
    assert settings[rescaling.SUBMISSION_STABILIZATION_MS] == 3_000


def test_one_setting_under_two_names_must_say_the_same() -> None:
    kebab = "spark.elastic.adaptive-scheduler.executing.cooldown-after-rescaling"
    assert load({COOLDOWN: "60s", kebab: "1 min"})[rescaling.COOLDOWN_MS] == 60_000
    (error,) = errors_of({COOLDOWN: "60s", kebab: "2 min"})
    assert kebab in error
    assert COOLDOWN in error
    assert "'60s'" in error
    assert "'2 min'" in error


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("spark.elastic.schedulermode", "spark.elastic.schedulerMode"),
        ("spark.elastic.warmer-timeout", "spark.elastic.warmUpTimeout"),
        ("spark.elastic.cooldown", COOLDOWN),
        ("spark.elastic.journal.directory", "spark.elastic.journal.dir"),
        ("spark.elastic.", "spark.elastic.python"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(name: str, nearest: str) -> None:
    (error,) = errors_of({name: "1"})
    assert name in error
    if name != "spark.elastic.":
        assert nearest in error


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        (
            "schedulerMode",
            "reactiv",
            ("'reactiv'", "one of reactive, adaptive, off", "set spark.elastic.schedulerMode=reactive"),
        ),
        ("warmUpTimeout", "-1", ("'-1'", "a duration such as", "=10s")),
        ("startTimeout", "soon", ("'soon'", "a duration such as", "=10s")),
        ("adviseOnly", "yes", ("'yes'", "true or false", "=false")),
        ("maxParallelism", "40000", ("'40000'", "from 1 to 32768", "=32768")),
        ("adaptiveScheduler.minParallelismIncrease", "0", ("'0'", "from 1 up", "=1")),
        ("adaptiveScheduler.maxConcurrentRescales", "0", ("'0'", "from 1 up", "=4")),
        ("journal.maxSize", "1k", ("'1k'", "at least 64k", "=64m")),
        ("python", "", ("''", "a command", "=python3")),
    ],
)
def test_a_value_out_of_range_is_refused_with_what_to_type(
    key: str, text: str, words: tuple[str, ...]
) -> None:
    (error,) = errors_of({PREFIX + key: text})
    for word in words:
        assert word in error


def test_all_errors_are_reported_at_once() -> None:
    found = errors_of({"spark.elastic.nonsense": "1", "spark.elastic.adviseOnly": "2", COOLDOWN: "x"})
    assert len(found) == 3


def test_the_longest_interval_may_not_be_shorter_than_the_cooldown() -> None:
    longest = "spark.elastic.adaptiveScheduler.scalingInterval.max"
    assert load({longest: "30s"})[rescaling.SCALING_INTERVAL_MAX_MS] == 30_000
    (error,) = errors_of({longest: "10s"})
    assert f"set {longest}=30s" in error
    # An invalid cooldown is reported alone: the interval cannot be compared with it.
    assert len(errors_of({longest: "10s", COOLDOWN: "x"})) == 1


def test_no_value_can_be_typed() -> None:
    assert load({"spark.elastic.journal.dir": "none"})[application.JOURNAL_DIR] is None
    assert load({"spark.elastic.adaptiveScheduler.rescaleTrigger.maxDelay": "None"}) == Settings()


def test_settings_written_as_conf_are_read_back() -> None:
    settings = load(
        {
            "spark.elastic.journal.dir": "/somewhere",
            "spark.elastic.journal.maxSize": "1000000",
            "spark.elastic.adviseOnly": "true",
            COOLDOWN: "1500",
        }
    )
    assert load(settings.as_conf()) == settings
    assert load(Settings().as_conf()) == Settings()


@pytest.mark.parametrize("name", ["autoscale.batchGain", "journal.dir"])
def test_none_is_written_where_the_default_is_a_value(name: str) -> None:
    settings = load({f"{PREFIX}{name}": "none"})
    assert settings != Settings()
    assert load(settings.as_conf()) == settings


def test_every_key_has_a_row_in_the_table() -> None:
    table = markdown_table().splitlines()
    # After the keys: options of custom policies, the keys that only queries have, and other keys of queries.
    of_queries = [f"query.NAME.{name}" for name in OF_QUERY]
    assert [row.split("`")[1] for row in table[2 + len(keys()) :]] == [
        "policy.NAME.OPTION",
        *of_queries,
        "query.NAME.KEY",
    ]
    for key, row in zip(keys(), table[2 : 2 + len(keys())], strict=True):
        own = {None: "", "always": "yes", "start": "at its start"}[key.per_query]
        assert row.replace(r"\|", "").split("|")[4].strip() == own
        assert row.startswith(f"| `{key.name}` |")
        assert row.endswith(". |")


def test_the_module_prints_the_table() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "spark_elastic.settings"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert run.stdout == markdown_table()
    assert run.stderr == ""


def test_a_chain_of_policies_is_their_names_in_order() -> None:
    adaptive = {"spark.elastic.schedulerMode": "adaptive"}
    assert load({**adaptive, "spark.elastic.policy": "Autoscale"}).core().policy == ("autoscale",)
    found = load({**adaptive, "spark.elastic.policy": "autoscale"})
    assert load(found.as_conf()) == found


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("autoscal", "autoscale"),
        ("autoscale,autoscale", "autoscale"),
        ("declared, autoscale", "declared"),
        ("", "declared"),
        ("x y z", "declared"),
    ],
)
def test_a_chain_that_cannot_be_is_refused_with_one_that_can(text: str, better: str) -> None:
    (error,) = errors_of({"spark.elastic.schedulerMode": "adaptive", "spark.elastic.policy": text})
    assert error.startswith(f"spark.elastic.policy is '{text}', allowed is one of declared, ")
    assert error.endswith(f"(declared only alone): set spark.elastic.policy={better}")


CUSTOM = {"spark.elastic.schedulerMode": "adaptive", "spark.elastic.policy": "my_package.scaling:LateNight"}


def test_custom_policies_and_their_options() -> None:
    options = {
        "spark.elastic.policy.LateNight.slots": " 4",
        "spark.elastic.query.orders.policy": "autoscale, day-time",
        "spark.elastic.policy.day-time.zone": "Europe/Berlin",
    }
    found = load({**CUSTOM, **options})
    assert found.custom_policies == ("my_package.scaling:LateNight", "day-time")
    assert found.policy_options == {"LateNight": {"slots": " 4"}, "day-time": {"zone": "Europe/Berlin"}}
    assert load(found.as_conf()) == found


def test_options_may_be_for_a_policy_of_the_policy_file() -> None:
    options = {"spark.elastic.policy.LateNight.slots": "4", "spark.elastic.policyFile": "/etc/policy.yaml"}
    assert load(options).policy_options == {"LateNight": {"slots": "4"}}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("LateNihgt.slots", "for the policy LateNihgt, which nothing uses, custom policies in use are LateN"),
        ("autoscale.maxLag", "autoscale is none: set spark.elastic.autoscale.maxLag=4"),
        ("LateNight", "allowed is spark.elastic.policy.NAME.OPTION, the option an argument: set "),
        ("LateNight.max-lag", "allowed is spark.elastic.policy.NAME.OPTION, the option an argument: set "),
        (".slots", "set spark.elastic.policy.LateNight.slots=4"),
    ],
)
def test_an_option_that_is_none_is_refused(name: str, says: str) -> None:
    (error,) = errors_of({**CUSTOM, f"spark.elastic.policy.{name}": "4"})
    assert error.startswith(f"spark.elastic.policy.{name} is ")
    assert says in error


@pytest.mark.parametrize("text", ["my_package.scaling:LateNight,LateNight", "a.b:C,d.e:C"])
def test_two_policies_of_one_name_would_have_the_same_options(text: str) -> None:
    (error,) = errors_of({"spark.elastic.schedulerMode": "adaptive", "spark.elastic.policy": text})
    assert "each once" in error


def test_a_custom_policy_needs_bounds_as_ours_do() -> None:
    (error,) = errors_of({**CUSTOM, "spark.elastic.schedulerMode": "reactive"})
    assert error.endswith("set spark.elastic.schedulerMode=adaptive")
