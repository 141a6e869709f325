"""The registry of settings: every key once, with its type, default, range and one line of doc.

A key is written in Spark's style (``spark.elastic.schedulerMode``) or in Flink's
(``spark.elastic.scheduler-mode``); some have an older name as well. ``python -m spark_elastic.settings``
prints the table that the README shows.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Set
from typing import Any

import attrs
from attrs import frozen

from spark_elastic import query_bounds
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.declared import WantedBounds
from spark_elastic.core.failures.strategy import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartPolicy,
)
from spark_elastic.core.settings import CoreSettings
from spark_elastic.durations import format_duration
from spark_elastic.setting_kinds import (
    BOOL,
    NONE,
    Kind,
    any_text,
    camel,
    choice,
    duration,
    number,
    or_none,
    size,
    whole,
)

__all__ = ["PREFIX", "Key", "Settings", "SettingsError", "keys", "load", "markdown_table", "spellings"]

PREFIX = "spark.elastic."

# A policy process that is silent for so long hangs. Not a key: nobody has a reason to choose another.
_HANG_MS = 10_000


class SettingsError(ValueError):
    """Settings that cannot be used: `errors` has one sentence for each."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


@frozen(kw_only=True)
class Key:
    """One setting; `name` is without the prefix, `aliases` are its older names.

    `default` is that of reactive mode, `adaptive` that of adaptive mode.
    """

    name: str
    kind: Kind
    default: Any
    adaptive: Any
    doc: str
    aliases: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """Return the canonical spelling."""
        return PREFIX + self.name

    def format(self, value: Any) -> str:
        """Return `value` as a user would type it."""
        return NONE if value is None else self.kind.format(value)


_SAME = object()


def _key(name: str, kind: Kind, default: Any, doc: str, *aliases: str, adaptive: Any = _SAME) -> Any:
    """Declare a field of `Settings` with its key."""
    in_adaptive = default if adaptive is _SAME else adaptive
    key = Key(name=name, kind=kind, default=default, adaptive=in_adaptive, doc=doc, aliases=aliases)
    return attrs.field(default=default, metadata={"key": key})


@frozen(kw_only=True)
class Settings:
    """What a user can set, read and checked; names ending in ``_ms`` are milliseconds."""

    scheduler_mode: str = _key(
        "schedulerMode",
        choice("reactive", "adaptive", "off"),
        "reactive",
        "`reactive`: queries use all slots that are there. `adaptive`: queries keep within the bounds that "
        "are declared for them, and executors are requested for that. `off`: the plugin does nothing.",
    )
    python: str | None = _key(
        "python",
        any_text("command", "python3"),
        None,
        "Python that runs the policy process. None: the driver's own (`spark.pyspark.driver.python`, "
        "`spark.pyspark.python`, their environment variables, `python3`).",
    )
    warm_up_timeout_ms: int = _key(
        "warmUpTimeout",
        duration(),
        10_000,
        "How long a restart waits at most, while its query goes on, for executors that have just joined: "
        "these begin with small jobs of ours, so that no micro-batch meets a cold one. 0: they do not.",
    )
    graceful_stop_timeout_ms: int = _key(
        "gracefulStopTimeout",
        duration(),
        30_000,
        "How long a query may take to end its micro-batch before it is interrupted for a rescale, or "
        "twice as long as its last one took, if that is longer.",
    )
    start_timeout_ms: int = _key(
        "startTimeout",
        duration(),
        10_000,
        "How long a query's start waits for the policy's answer before it starts as in plain Spark.",
    )
    resource_wait_timeout_ms: int = _key(
        "adaptiveScheduler.submission.resourceWaitTimeout",
        duration(forever=True),
        -1,
        "How long a query waits for the slots that its lower bound needs. Then it starts regardless "
        "(reactive), or fails (adaptive).",
        "adaptiveScheduler.resourceWaitTimeout",
        adaptive=300_000,
    )
    submission_stabilization_timeout_ms: int = _key(
        "adaptiveScheduler.submission.resourceStabilizationTimeout",
        duration(),
        0,
        "How long a query's start waits for more executors once it has enough to run.",
        "adaptiveScheduler.resourceStabilizationTimeout",
        adaptive=10_000,
    )
    cooldown_after_rescaling_ms: int = _key(
        "adaptiveScheduler.executing.cooldownAfterRescaling",
        duration(),
        30_000,
        "Shortest time between two rescales that restart a query.",
        "adaptiveScheduler.scalingInterval.min",
    )
    executing_stabilization_timeout_ms: int = _key(
        "adaptiveScheduler.executing.resourceStabilizationTimeout",
        duration(),
        10_000,
        "How long a rescale that restarts a query waits for more executors to come.",
    )
    rescale_trigger_max_delay_ms: int | None = _key(
        "adaptiveScheduler.rescaleTrigger.maxDelay",
        or_none(duration()),
        None,
        "Longest time between a change of the executors and its evaluation. None: one trigger interval more "
        "than `adaptiveScheduler.rescaleTrigger.maxCheckpointFailures`.",
    )
    max_checkpoint_failures: int = _key(
        "adaptiveScheduler.rescaleTrigger.maxCheckpointFailures",
        whole(1),
        2,
        "Number of micro-batches that may fail to be committed in time before a change is evaluated without "
        "one.",
    )
    min_parallelism_increase: int = _key(
        "adaptiveScheduler.minParallelismIncrease",
        whole(1),
        1,
        "Smallest growth that is worth a restart.",
    )
    scaling_interval_max_ms: int | None = _key(
        "adaptiveScheduler.scalingInterval.max",
        or_none(duration()),
        None,
        "After this time since the last rescale any growth is worth a restart. None: never.",
    )
    rescale_policy: str = _key(
        "adaptiveScheduler.rescalePolicy",
        choice("gain", "always"),
        "gain",
        "`gain`: restart a query only if that saves more than it costs. `always`: whenever the slots change.",
    )
    explicit_parallelism: str = _key(
        "explicitParallelism",
        choice("fixed", "upperBound", "ignore"),
        "ignore",
        "What the user's own `spark.sql.shuffle.partitions` means: never touched, the most to use, nothing.",
        adaptive="upperBound",
    )
    state_store: str = _key(
        "stateStore",
        choice("rescalable", "unchanged"),
        "rescalable",
        "`rescalable`: new queries whose user chose no state store get RocksDB and checkpoint format 2, so "
        "that their state can be re-partitioned.",
    )
    max_parallelism: int = _key(
        "maxParallelism",
        whole(1, 32_768),
        32_768,
        "Most partitions that a query is given.",
    )
    restart_strategy: str = _key(
        "restartStrategy.type",
        choice(
            "none",
            "fixed-delay",
            "failure-rate",
            "exponential-delay",
            also={
                "disable": "none",
                "off": "none",
                "fixeddelay": "fixed-delay",
                "failurerate": "failure-rate",
                "exponentialdelay": "exponential-delay",
            },
        ),
        "none",
        "Whether a query that fails is started again, and when; the keys below say more of each. `none`: "
        "never, as in plain Spark.",
        "restartStrategy",
        adaptive="exponential-delay",
    )
    fixed_delay_attempts: int = _key(
        "restartStrategy.fixedDelay.attempts",
        whole(0),
        1,
        "`fixed-delay`: how often a query is started again.",
    )
    fixed_delay_ms: int = _key(
        "restartStrategy.fixedDelay.delay",
        duration(),
        1_000,
        "`fixed-delay`: time from a failure to the next start.",
    )
    failure_rate_max_failures: int = _key(
        "restartStrategy.failureRate.maxFailuresPerInterval",
        whole(1),
        1,
        "`failure-rate`: most failures in an interval after which a query is still started again.",
    )
    failure_rate_interval_ms: int = _key(
        "restartStrategy.failureRate.failureRateInterval",
        duration(1),
        60_000,
        "`failure-rate`: the interval in which failures are counted.",
    )
    failure_rate_delay_ms: int = _key(
        "restartStrategy.failureRate.delay",
        duration(),
        1_000,
        "`failure-rate`: time from a failure to the next start.",
    )
    initial_backoff_ms: int = _key(
        "restartStrategy.exponentialDelay.initialBackoff",
        duration(1),
        1_000,
        "`exponential-delay`: time from the first failure to the next start; later ones are longer.",
    )
    max_backoff_ms: int = _key(
        "restartStrategy.exponentialDelay.maxBackoff",
        duration(1),
        60_000,
        "`exponential-delay`: longest time from a failure to the next start.",
    )
    backoff_multiplier: float = _key(
        "restartStrategy.exponentialDelay.backoffMultiplier",
        number("above 1", lambda value: value > 1, "1.5"),
        1.5,
        "`exponential-delay`: by what the time grows with each failure.",
    )
    reset_backoff_threshold_ms: int = _key(
        "restartStrategy.exponentialDelay.resetBackoffThreshold",
        duration(1),
        3_600_000,
        "`exponential-delay`: after so long without a failure the time is the initial one again.",
    )
    jitter_factor: float = _key(
        "restartStrategy.exponentialDelay.jitterFactor",
        number("from 0 to 1", lambda value: 0 <= value <= 1, "0.1"),
        0.1,
        "`exponential-delay`: share of the time by which it is made longer or shorter at random, so that "
        "queries do not all start at once.",
    )
    attempts_before_reset_backoff: int | None = _key(
        "restartStrategy.exponentialDelay.attemptsBeforeResetBackoff",
        or_none(whole(1)),
        None,
        "`exponential-delay`: how often a query is started again before a time without failures. None: "
        "without limit.",
    )
    policy_file: str | None = _key(
        "policyFile",
        or_none(any_text("local file", "/etc/spark-elastic/policy.yaml")),
        None,
        "YAML file with the bounds of queries by name, for adaptive mode; it is read again when it changes.",
    )
    slot_idle_timeout_ms: int = _key(
        "slotIdleTimeout",
        duration(1_000),
        50_000,
        "How long executors beyond those that the declared bounds call for are kept (adaptive mode).",
    )
    savepoint_dir: str | None = _key(
        "savepointDir",
        or_none(any_text("folder", "hdfs://namenode/savepoints")),
        None,
        "Folder under which savepoints are written if who asks for one names none: a path, or a URI of any "
        "Hadoop file system.",
    )
    batch_preset: str = _key(
        "batch.preset",
        choice("elastic", "flink"),
        "elastic",
        "Rules for batch stages. `elastic`: our own. `flink`: those of Flink's adaptive batch scheduler.",
    )
    decision_timeout_ms: int = _key(
        "batch.decisionTimeout",
        duration(1),
        200,
        "How long the planning of a batch stage waits for an answer before Spark's own rule decides.",
    )
    auto_parallelism: bool = _key(
        "batch.autoParallelism.enabled",
        BOOL,
        True,
        "Whether the parallelism of batch stages is decided here. If not, they run as in plain Spark.",
    )
    min_batch_parallelism: int = _key(
        "batch.autoParallelism.minParallelism",
        whole(1, 32_768),
        1,
        "Fewest partitions that a batch shuffle writes, and fewest tasks that read as many.",
    )
    max_batch_parallelism: int | None = _key(
        "batch.autoParallelism.maxParallelism",
        or_none(whole(1, 32_768)),
        None,
        "Most partitions that a batch shuffle writes, and most tasks that read them. None: 128 for each slot "
        "(preset `flink`: 128).",
    )
    data_volume_per_task: int | None = _key(
        "batch.autoParallelism.avgDataVolumePerTask",
        or_none(size(1)),
        None,
        "Bytes that one task of a batch stage should read. None: what the application sets as "
        "spark.sql.adaptive.advisoryPartitionSizeInBytes, else 64m (preset `flink`: 16m).",
    )
    initial_count: bool = _key(
        "batch.initialCount.enabled",
        BOOL,
        True,
        "Whether the number of partitions that a batch shuffle writes is decided here.",
    )
    ranges: bool = _key(
        "batch.ranges.enabled",
        BOOL,
        True,
        "Whether it is decided here which partitions each task of a batch stage reads.",
    )
    default_source_parallelism: int | None = _key(
        "batch.autoParallelism.defaultSourceParallelism",
        or_none(whole(1, 32_768)),
        None,
        "Most tasks that read a batch source. None: as `batch.autoParallelism.maxParallelism`.",
    )
    sources: bool = _key(
        "batch.sources.enabled",
        BOOL,
        True,
        "Whether it is decided here how many tasks share out what a batch query reads.",
    )
    kafka_latest: bool = _key(
        "batch.sources.kafkaLatest",
        BOOL,
        False,
        "Whether that holds for reads of Kafka up to the latest offset, too. What is latest is then found "
        "out when a query is planned, and not by each of its runs: a DataFrame that is collected twice ends "
        "twice at the same offsets.",
    )
    history_size: int = _key(
        "history.size",
        whole(1),
        100,
        "Number of rescales kept per query.",
    )
    journal_dir: str | None = _key(
        "journal.dir",
        or_none(any_text("local folder", "/var/log/spark-elastic")),
        None,
        "Where the decision journal is written. None: `spark-elastic/` in `spark.eventLog.dir` if event logs "
        "are on and that is a local folder, else no journal.",
    )
    journal_max_size: int = _key(
        "journal.maxSize",
        size(64 << 10),
        64 << 20,
        "Most room that an application's journal takes; the oldest part goes first.",
    )
    rest_enabled: bool = _key(
        "rest.enabled",
        BOOL,
        True,
        "Whether the REST API is there, at `/elastic/api/v1` under the Spark UI.",
    )
    rest_read_only: bool = _key(
        "rest.readOnly",
        BOOL,
        False,
        "Whether the REST API refuses every change.",
    )
    advise_only: bool = _key(
        "adviseOnly",
        BOOL,
        False,
        "Decide and report as usual, but change nothing.",
    )

    bounds: Mapping[str, WantedBounds] = attrs.field(factory=dict)
    source_bounds: Mapping[str, Mapping[str, WantedBounds]] = attrs.field(factory=dict)

    def core(self) -> CoreSettings:
        """Return the part that the scheduler looks at."""
        return CoreSettings(
            warm_up_ms=self.warm_up_timeout_ms,
            grace_ms=self.graceful_stop_timeout_ms,
            hang_ms=_HANG_MS,
            start_wait_ms=self.start_timeout_ms,
            decision_wait_ms=self.decision_timeout_ms if self.auto_parallelism else 0,
            advise_only=self.advise_only,
            resource_wait_ms=self.resource_wait_timeout_ms,
            submission_stabilization_ms=self.submission_stabilization_timeout_ms,
            slot_idle_ms=self.slot_idle_timeout_ms,
            cooldown_ms=self.cooldown_after_rescaling_ms,
            executing_stabilization_ms=self.executing_stabilization_timeout_ms,
            max_delay_ms=self.rescale_trigger_max_delay_ms,
            max_checkpoint_failures=self.max_checkpoint_failures,
            min_parallelism_increase=self.min_parallelism_increase,
            scaling_interval_max_ms=self.scaling_interval_max_ms,
            rescale_policy=self.rescale_policy,  # type: ignore[arg-type]  # checked by its kind
            explicit_parallelism=self.explicit_parallelism,  # type: ignore[arg-type]
            state_store=self.state_store,  # type: ignore[arg-type]
            max_parallelism=self.max_parallelism,
            history_size=self.history_size,
            savepoint_dir=self.savepoint_dir,
            mode=self.scheduler_mode,  # type: ignore[arg-type]  # a policy that is off has no core
            bounds=self.bounds,
            source_bounds=self.source_bounds,
            restart=self.restart_policy(),
        )

    def batch(self) -> BatchSettings:
        """Return the part that decides about batch stages."""
        return BatchSettings(
            preset=self.batch_preset,  # type: ignore[arg-type]  # checked by its kind
            enabled=self.auto_parallelism,
            explicit_parallelism=self.explicit_parallelism,  # type: ignore[arg-type]
            initial_enabled=self.initial_count,
            ranges_enabled=self.ranges,
            sources_enabled=self.sources,
            kafka_latest=self.kafka_latest,
            min_parallelism=self.min_batch_parallelism,
            max_parallelism=self.max_batch_parallelism,
            avg_data_volume_per_task=self.data_volume_per_task,
            default_source_parallelism=self.default_source_parallelism,
        )

    def restart_policy(self) -> RestartPolicy:
        """Return what becomes of failed queries, with every value that was set for the chosen type."""
        match self.restart_strategy:
            case "fixed-delay":
                return FixedDelay(attempts=self.fixed_delay_attempts, delay_ms=self.fixed_delay_ms)
            case "failure-rate":
                return FailureRate(
                    max_failures_per_interval=self.failure_rate_max_failures,
                    interval_ms=self.failure_rate_interval_ms,
                    delay_ms=self.failure_rate_delay_ms,
                )
            case "exponential-delay":
                return ExponentialDelay(
                    initial_backoff_ms=self.initial_backoff_ms,
                    max_backoff_ms=self.max_backoff_ms,
                    backoff_multiplier=self.backoff_multiplier,
                    reset_backoff_threshold_ms=self.reset_backoff_threshold_ms,
                    jitter_factor=self.jitter_factor,
                    attempts_before_reset_backoff=self.attempts_before_reset_backoff,
                )
            case _:
                return NoRestart()

    def as_conf(self) -> dict[str, str]:
        """Return the value of every key that has one as text; `load` reads it back to equal settings."""
        values = ((key, getattr(self, name)) for name, key in _FIELDS.items())
        ours = {key.full_name: key.format(value) for key, value in values if value is not None}
        return {**ours, **query_bounds.write(self.bounds, self.source_bounds)}


_FIELDS: dict[str, Key] = {
    field.name: field.metadata["key"] for field in attrs.fields(Settings) if "key" in field.metadata
}
# Two durations of which the second may not be shorter than the first, and what to call the first.
_ORDERED = (
    ("cooldown_after_rescaling_ms", "scaling_interval_max_ms", "cooldown after rescaling"),
    ("initial_backoff_ms", "max_backoff_ms", "initial backoff"),
)
# Every accepted name in camel case, without the prefix, and the field that it sets.
_NAMES: dict[str, str] = {name: field for field, key in _FIELDS.items() for name in (key.name, *key.aliases)}


def keys() -> tuple[Key, ...]:
    """Return the whole registry in the order of the table."""
    return tuple(_FIELDS.values())


def load(conf: Mapping[str, str]) -> Settings:
    """Read the settings out of a Spark configuration; what does not start with the prefix is left alone.

    Raises SettingsError with every error found: what was typed, what is allowed, what to type instead.
    """
    errors: list[str] = []
    values: dict[str, Any] = {}
    typed: dict[str, tuple[str, str]] = {}
    refused: set[str] = set()
    bounds, source_bounds, wrong = query_bounds.read(conf)
    errors.extend(wrong)
    for name, text in sorted(conf.items()):
        if not name.startswith(PREFIX) or query_bounds.is_one(name):
            continue
        field = _NAMES.get(camel(name.removeprefix(PREFIX)))
        if field is None:
            errors.append(_unknown(name))
            continue
        key = _FIELDS[field]
        try:
            value = key.kind.parse(text.strip())
        except (ValueError, KeyError):
            refused.add(field)
            errors.append(
                f"{name} is '{text}', allowed is {key.kind.allowed}: "
                f"set {key.full_name}={_suggest(key, text)}"
            )
            continue
        if field in typed and values[field] != value:
            other, other_text = typed[field]
            errors.append(
                f"{other} is '{other_text}' and {name} is '{text}', but they are one setting: "
                f"keep only {key.full_name}={other_text}"
            )
            continue
        values[field] = value
        typed[field] = (name, text)
    if values.get("scheduler_mode") == "adaptive":
        values = {**{field: key.adaptive for field, key in _FIELDS.items()}, **values}
    settings = Settings(**values, bounds=bounds, source_bounds=source_bounds)
    errors.extend(_cross_check(settings, refused))
    errors.extend(_batch_bounds(settings))
    if errors:
        raise SettingsError(tuple(errors))
    return settings


def spellings(conf: Mapping[str, str], full_name: str) -> tuple[str, ...]:
    """Return the names under which `conf` sets the key `full_name`, whatever their spelling."""
    wanted = _NAMES[full_name.removeprefix(PREFIX)]
    ours = (name for name in conf if name.startswith(PREFIX))
    return tuple(name for name in ours if _NAMES.get(camel(name.removeprefix(PREFIX))) == wanted)


def _cross_check(settings: Settings, refused: Set[str]) -> list[str]:
    """Compare the durations that belong together; what was refused is no value to compare with."""
    errors: list[str] = []
    for low, high, low_words in _ORDERED:
        shortest, longest = getattr(settings, low), getattr(settings, high)
        if {low, high} & refused or longest is None or longest >= shortest:
            continue
        name = _FIELDS[high].full_name
        errors.append(
            f"{name} is '{format_duration(longest)}', allowed is at least the {low_words}, "
            f"'{format_duration(shortest)}': set {name}={format_duration(shortest)}"
        )
    return errors


def _batch_bounds(settings: Settings) -> list[str]:
    low, high = settings.min_batch_parallelism, settings.max_batch_parallelism
    if high is None or low <= high:
        return []
    name = _FIELDS["max_batch_parallelism"].full_name
    least = _FIELDS["min_batch_parallelism"].full_name
    return [f"{name} is '{high}', allowed is at least {least}, '{low}': set {name}={low}"]


def _unknown(name: str) -> str:
    typed = camel(name.removeprefix(PREFIX)).lower()

    def likeness(known: str) -> float:
        # People leave out the long middle of a name, so its last parts are compared as well.
        parts = known.lower().split(".")
        ends = (".".join(parts[start:]) for start in range(len(parts)))
        return max(difflib.SequenceMatcher(None, typed, end).ratio() for end in ends)

    key = _FIELDS[_NAMES[max(_NAMES, key=likeness)]]
    return f"{name} is no setting, the nearest is {key.full_name}: set that or remove {name}"


def _suggest(key: Key, text: str) -> str:
    """Return the default, or a choice that looks like what was typed."""
    near = difflib.get_close_matches(text, key.kind.choices, n=1)
    if near:
        return near[0]
    return key.kind.example if key.default is None else key.format(key.default)


def markdown_table() -> str:
    """Return the README's table of settings."""
    lines = ["| Setting (`spark.elastic.…`) | Value | Default | What it does |", "|---|---|---|---|"]
    for key in keys():
        older = "".join(f" Older name: `{alias}`." for alias in key.aliases)
        default = key.format(key.default)
        if key.adaptive != key.default:
            default += f" (adaptive: {key.format(key.adaptive)})"
        lines.append(f"| `{key.name}` | {key.kind.name} | {default} | {key.doc}{older} |")
    lines += [
        f"| `{query_bounds.EXAMPLES[0]}`, `….{query_bounds.EXAMPLES[1]}` | int | none | {query_bounds.DOC} |",
        f"| `{query_bounds.SAVEPOINT_EXAMPLE}` | folder | none | {query_bounds.SAVEPOINT_DOC} |",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown_table(), end="")
