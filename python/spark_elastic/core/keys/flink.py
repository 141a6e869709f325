"""Flink's own options: the corresponding setting of each, and remarks on those without one.

A user who comes from Flink sets them under their full names after ``spark.elastic.``; the table in
docs/migration.md is generated from this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from spark_elastic.core.keys import (
    application,
    batch,
    policies,
    rescaling,
)
from spark_elastic.core.keys.key import Key

_SCHEDULER = "jobmanager.adaptive-scheduler."
_BATCH = "execution.batch.adaptive.auto-parallelism."
_OLDER_BATCH = "jobmanager.adaptive-batch-scheduler."
_AUTOSCALER = "job.autoscaler."
_OPERATOR = "kubernetes.operator."
_RESTART = "restart-strategy."


@frozen(kw_only=True)
class Option:
    """An option of Flink by its full name, and by `older` ones; a name may end in ``.*``.

    `key` is the corresponding setting. If it is None, `instead` names in Markdown what replaces the option,
    "" if nothing needs to. `difference` states what else a user has to know.
    """

    name: str
    older: tuple[str, ...] = ()
    key: Key[Any] | None = None
    instead: str = ""
    difference: str = ""


def _scheduler(name: str, key: Key[Any], difference: str = "", *older: str) -> Option:
    past = tuple(_SCHEDULER + one for one in older)
    return Option(name=_SCHEDULER + name, older=past, key=key, difference=difference)


def _batch(name: str, key: Key[Any], difference: str = "") -> Option:
    older = () if name == "enabled" else (_OLDER_BATCH + name,)
    return Option(name=_BATCH + name, older=older, key=key, difference=difference)


def _autoscaler(name: str, of: Key[Any] | str, difference: str = "", *older: str) -> Option:
    names = [_AUTOSCALER + one for one in (name, *older)]
    past = (*names[1:], *(_OPERATOR + one for one in names))
    if isinstance(of, str):
        return Option(name=names[0], older=past, instead=of, difference=difference)
    return Option(name=names[0], older=past, key=of, difference=difference)


def _restart(key: Key[Any], name: str) -> Option:
    return Option(name=_RESTART + name, key=key)


OPTIONS: tuple[Option, ...] = (
    Option(name="scheduler-mode", key=rescaling.MODE, difference="`REACTIVE` is the default"),
    Option(name="jobmanager.scheduler", instead="`schedulerMode`", difference="`Adaptive` is `adaptive`"),
    _scheduler(
        "submission.resource-wait-timeout",
        rescaling.RESOURCE_WAIT_MS,
        "the same defaults",
        "resource-wait-timeout",
    ),
    _scheduler(
        "submission.resource-stabilization-timeout",
        rescaling.SUBMISSION_STABILIZATION_MS,
        "the same defaults",
        "resource-stabilization-timeout",
    ),
    _scheduler(
        "executing.cooldown-after-rescaling",
        rescaling.COOLDOWN_MS,
        "for rescales that move state",
        "scaling-interval.min",
    ),
    _scheduler(
        "executing.resource-stabilization-timeout",
        rescaling.EXECUTING_STABILIZATION_MS,
        "10 s instead of 60 s",
    ),
    _scheduler(
        "rescale-trigger.max-checkpoint-failures",
        rescaling.MAX_CHECKPOINT_FAILURES,
        "micro-batches that have failed",
    ),
    _scheduler("rescale-trigger.max-delay", rescaling.MAX_DELAY_MS),
    _scheduler(
        "min-parallelism-increase",
        rescaling.MIN_PARALLELISM_INCREASE,
        "without effect in Flink since 2.0",
    ),
    _scheduler(
        "scaling-interval.max",
        rescaling.SCALING_INTERVAL_MAX_MS,
        "without effect in Flink since 2.0",
    ),
    Option(
        name=_SCHEDULER + "prefer-minimal-taskmanagers",
        difference="whole executors are released",
    ),
    Option(name="slot.idle.timeout", key=application.SLOT_IDLE_MS),
    Option(
        name="parallelism.default",
        instead="`spark.sql.shuffle.partitions`, with `explicitParallelism` and `batch.explicitParallelism`",
        difference="an upper bound",
    ),
    Option(
        name="pipeline.max-parallelism",
        key=rescaling.MAX_PARALLELISM,
        difference="state is re-partitioned, not assigned by key groups",
    ),
    Option(
        name=_RESTART + "type",
        older=("restart-strategy",),
        key=rescaling.STRATEGY,
        difference="lost executors cost no attempt",
    ),
    _restart(rescaling.FIXED_DELAY_ATTEMPTS, "fixed-delay.attempts"),
    _restart(rescaling.FIXED_DELAY_MS, "fixed-delay.delay"),
    _restart(rescaling.FAILURE_RATE_MAX_FAILURES, "failure-rate.max-failures-per-interval"),
    _restart(rescaling.FAILURE_RATE_INTERVAL_MS, "failure-rate.failure-rate-interval"),
    _restart(rescaling.FAILURE_RATE_DELAY_MS, "failure-rate.delay"),
    _restart(rescaling.INITIAL_BACKOFF_MS, "exponential-delay.initial-backoff"),
    _restart(rescaling.MAX_BACKOFF_MS, "exponential-delay.max-backoff"),
    _restart(rescaling.BACKOFF_MULTIPLIER, "exponential-delay.backoff-multiplier"),
    _restart(rescaling.RESET_BACKOFF_THRESHOLD_MS, "exponential-delay.reset-backoff-threshold"),
    _restart(rescaling.JITTER_FACTOR, "exponential-delay.jitter-factor"),
    _restart(
        rescaling.ATTEMPTS_BEFORE_RESET_BACKOFF,
        "exponential-delay.attempts-before-reset-backoff",
    ),
    Option(
        name="web.adaptive-scheduler.rescale-history.size",
        key=application.HISTORY_SIZE,
        difference="100 instead of none",
    ),
    Option(
        name="execution.checkpointing.savepoint-dir",
        older=("state.savepoints.dir",),
        key=application.SAVEPOINT_DIR,
    ),
    _autoscaler("enabled", "`policy autoscale`", "runs in the application, no operator"),
    _autoscaler(
        "scaling.custom-executors",
        "[a policy of your own](custom-policies.md)",
        "in Python; alone, or in a chain with `autoscale`",
    ),
    _autoscaler(
        "metrics.custom-evaluators",
        "[a policy of your own](custom-policies.md)",
        "in Python; alone, or in a chain with `autoscale`",
    ),
    _autoscaler("scaling.enabled", "`adviseOnly`", "`false` is `adviseOnly true`, for the whole application"),
    _autoscaler(
        "utilization.target",
        policies.LOAD,
        "none: by the variation of the input, instead of 0.7",
        "target.utilization",
    ),
    _autoscaler(
        "utilization.min",
        "`autoscale.loadBand`",
        "above the target; for scaling down only after a step up",
    ),
    _autoscaler(
        "utilization.max",
        "`autoscale.loadBand`",
        "above the target; for scaling down only after a step up",
        "target.utilization.boundary",
    ),
    _autoscaler("catch-up.duration", policies.CATCH_UP_MS, "10 min instead of 30 min"),
    _autoscaler("scale-down.interval", policies.WINDOW_MS, "5 min instead of 1 h"),
    _autoscaler("scale-down.max-factor", policies.MOST_DOWN),
    _autoscaler(
        "scale-up.max-factor",
        "",
        "up at once, as far as needed; `upperBound` and `maxExecutors` limit it",
    ),
    _autoscaler("restart.time", "", "pauses of rescales and start-up times are measured"),
    _autoscaler("restart.time-tracking.*", "", "pauses of rescales and start-up times are measured"),
    _autoscaler(
        "backlog-processing.lag-threshold",
        "",
        "a backlog is planned for as soon as there is one (`autoscale.catchUp`)",
    ),
    _autoscaler(
        "scaling.effectiveness.*",
        "",
        "always on: a number of slots that made batches slower, or fell short, is not tried again",
    ),
    _autoscaler(
        "observed-true-processing-rate.*",
        "",
        "what more slots bring is in the line fitted to micro-batches",
    ),
    _autoscaler(
        "observed-scalability.*",
        "",
        "what more slots bring is in the line fitted to micro-batches",
    ),
    _autoscaler(
        "history.max.*",
        "`history.size`",
        "for the decisions shown; the policy uses micro-batches",
    ),
    _autoscaler(
        "vertex.exclude.ids",
        "`query.NAME.policy declared`",
        "or `query.NAME.schedulerMode off`: plain Spark",
    ),
    _autoscaler("vertex.min-parallelism", "`query.NAME.lowerBound`", "per query"),
    _autoscaler("vertex.max-parallelism", "`query.NAME.upperBound`", "per query"),
    _autoscaler(
        "excluded.periods",
        "`schedule.excludedPeriods`, with `policy schedule,autoscale`",
        "cron with five fields, a duration and a time zone; may allow scaling up",
    ),
    _autoscaler("quota.cpu", policies.QUOTA_CORES, "as many executors as fit, instead of none"),
    _autoscaler("quota.memory", policies.QUOTA_MEMORY, "as many executors as fit, instead of none"),
    _autoscaler("scaling.parallelism-alignment.mode", "", "partitions need not divide key groups"),
    _autoscaler("metrics.window", "", "a line fitted to micro-batches"),
    _autoscaler("stabilization.interval", "", "a line fitted to micro-batches"),
    _autoscaler("memory.heap-usage.threshold", "", "off in Flink (1.0)"),
    _autoscaler(
        "memory.gc-pressure.threshold",
        "",
        "always on: 0.3, of garbage collection and spill together",
    ),
    _autoscaler("memory.tuning.*", ""),
    _batch("enabled", batch.ENABLED),
    _batch("min-parallelism", batch.MIN_PARALLELISM),
    _batch("max-parallelism", batch.MAX_PARALLELISM),
    _batch(
        "avg-data-volume-per-task",
        batch.AVG_DATA_VOLUME_PER_TASK,
        "64 MiB; 16 MiB with `batch.preset flink`",
    ),
    _batch("default-source-parallelism", batch.DEFAULT_SOURCE_PARALLELISM),
)
"""All options with a setting or a remark, in the order of the table."""

NAMES: Mapping[str, Key[Any]] = {
    name: option.key for option in OPTIONS if option.key is not None for name in (option.name, *option.older)
}
"""The names of those that correspond to settings, as Flink spells them."""

# fmt: off
_ROOTS = frozenset({
    "akka", "blob", "classloader", "client", "cluster", "env", "execution", "fs", "heartbeat",
    "high-availability", "historyserver", "io", "job", "jobmanager", "jobstore", "kubernetes",
    "parallelism", "pekko", "pipeline", "process", "security", "slot", "slow-task-detector",
    "sql-gateway", "state", "table", "task", "taskmanager", "web", "yarn",
})
# fmt: on
"""First parts of the names of Flink's options, except those that also begin spark-elastic's settings."""


def option_of(name: str) -> Option | None:
    """Return the option for a name that is not a setting, None if it is not Flink's, either.

    `name` is as Flink spells it. If only its first part is known, the result has no remarks.
    """
    for option in OPTIONS:
        if any(_fits(known, name) for known in (option.name, *option.older)):
            return option
    return Option(name=name) if "." in name and name.partition(".")[0] in _ROOTS else None


def _fits(known: str, name: str) -> bool:
    return name.startswith(known[:-1]) if known.endswith(".*") else name == known
