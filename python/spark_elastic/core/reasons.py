"""The catalogue: every reason that a decision can have, and the one sentence that says it.

Logs, history, UI and ``explain`` show these sentences and make up none of their own. In a sentence
``{slots:slot}`` reads "3 slots" (or "1 slot"), ``{batch_ms:ms}`` reads "312 ms", "1.5 s", "5 min" or "1 h",
and ``{read:bytes}`` reads "312 B", "1.5 MiB" or "2 GiB".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from string import Formatter
from typing import Any

from attrs import frozen

from spark_elastic.core.actions import DecisionKind


@frozen
class Reason:
    """One entry: the kind of its decisions, its sentence, and whether a query hears it only once."""

    kind: DecisionKind
    sentence: str
    once: bool = False


REASONS: Mapping[str, Reason] = {
    # Starts
    "start_per_slot": Reason(
        "start",
        "Starts with {after:partition} on {slots:slot}; the session's setting of {session} would have "
        "been used otherwise.",
    ),
    "start_bounded": Reason(
        "start",
        "Starts with {after:partition} on {slots:slot}: {bound_by} allows no more.",
    ),
    "start_repartitioned": Reason(
        "start",
        "Moves its state from {before:partition} to {after:partition} before it starts on {slots:slot}: "
        "a batch should take {after_ms:ms} instead of {before_ms:ms}.",
    ),
    "start_checkpoint_same": Reason(
        "start",
        "Starts with the {before:partition} of its checkpoint, which suit {slots:slot}.",
    ),
    "start_checkpoint_kept": Reason(
        "start",
        "Starts with the {before:partition} of its checkpoint: {after:partition} would save "
        "{saved_ms:ms} of {before_ms:ms} per batch, too little for what moving the state costs "
        "({cost_ms:ms}).",
    ),
    "start_checkpoint_pending": Reason(
        "start",
        "Starts with the {before:partition} of its checkpoint: the last batch was not committed and "
        "has to run before the state can be moved to {after:partition}.",
    ),
    "start_without_resources": Reason(
        "start",
        "Starts as it is: no resources came within {waited_ms:ms}, and Spark itself waits for executors.",
    ),
    "start_below_lower_bounds": Reason(
        "start",
        "Starts again as it was, though {slots:slot} cannot meet its lower bound: a query that ran already "
        "is not stopped for that.",
    ),
    "start_after_failure": Reason(
        "start",
        "Starts again from its checkpoint with the {before:partition} that it had.",
    ),
    # What is left alone, and why
    "untouched_fixed": Reason(
        "nothing_to_do",
        "Left alone: the application sets spark.sql.shuffle.partitions to {explicit}, and "
        "spark.elastic.explicitParallelism is fixed.",
        once=True,
    ),
    "untouched_trigger": Reason(
        "nothing_to_do",
        "Left alone: the count of a query with a {trigger} trigger is never changed.",
        once=True,
    ),
    "untouched_stateless": Reason(
        "nothing_to_do",
        "Left alone: the count of this stateless query cannot be changed while it runs.",
        once=True,
    ),
    "never_restarted": Reason(
        "nothing_to_do",
        "Keeps its {before:partition} on {slots:slot}: a query with a {trigger} trigger is never "
        "restarted, it ends by itself.",
        once=True,
    ),
    "no_repartition_source": Reason(
        "nothing_to_do",
        "Keeps its {before:partition}: a restart would end it, since Spark's socket source begins anew with "
        "each run. Read from files or Kafka instead.",
        once=True,
    ),
    "no_repartition_provider": Reason(
        "nothing_to_do",
        "Keeps the {before:partition} of its checkpoint: only state in RocksDB can be re-partitioned, "
        "this state is kept by the {provider} provider. A query with a new checkpoint can have it: leave "
        "spark.sql.streaming.stateStore.providerClass unset with spark.elastic.stateStore=rescalable.",
        once=True,
    ),
    "no_repartition_format": Reason(
        "nothing_to_do",
        "Keeps the {before:partition} of its checkpoint: its format is {format}, and re-partitioning "
        "needs format 2. A query with a new checkpoint can have it: set "
        "spark.sql.streaming.stateStore.checkpointFormatVersion=2, or leave it unset with "
        "spark.elastic.stateStore=rescalable.",
        once=True,
    ),
    "explicit_ignored": Reason(
        "info",
        "The application sets spark.sql.shuffle.partitions to {explicit}; "
        "spark.elastic.explicitParallelism is ignore, so the slots decide. Set it to upperBound or fixed "
        "to change that.",
        once=True,
    ),
    # Waiting
    "waiting_for_resources": Reason(
        "held",
        "Waits for resources: {slots:slot}, {needed} needed; waits {limit}.",
    ),
    "waiting_for_more": Reason(
        "held",
        "Has the {needed:slot} it needs; waits up to {stabilization_ms:ms} for more than {slots:slot} "
        "before it starts.",
    ),
    "all_executors_lost": Reason(
        "held",
        "All executors are lost: the query is left running with {before:partition}, and Spark waits for "
        "executors.",
    ),
    "below_lower_bounds": Reason(
        "held",
        "Keeps {before:partition} as it is: {slots:slot} cannot meet its lower bound.",
    ),
    "backing_off": Reason(
        "held",
        "Has failed; starts again from its checkpoint in {backoff_ms:ms}.",
    ),
    "cooldown": Reason(
        "held",
        "Will look at a change from {before:partition} to {after:partition} when {cooldown_ms:ms} have "
        "passed since the last start.",
    ),
    "stabilizing": Reason(
        "held",
        "Means to go from {before:partition} to {after:partition}; waits {stabilization_ms:ms} for the "
        "resources to settle.",
    ),
    "awaiting_batch": Reason(
        "held",
        "Goes from {before:partition} to {after:partition} at the end of the running micro-batch.",
    ),
    "recovering": Reason(
        "held",
        "Goes from {before:partition} to {after:partition} after a whole micro-batch without the executors "
        "that were lost.",
    ),
    "increase_too_small": Reason(
        "held",
        "Keeps {before:partition}: {after} would be fewer than {min_increase} more "
        "(spark.elastic.adaptiveScheduler.minParallelismIncrease).",
    ),
    "failed_before": Reason(
        "held",
        "Keeps {before:partition}: going to {after} has failed, and is tried again when the "
        "resources change.",
    ),
    # Nothing to do
    "parallelism_fits": Reason(
        "nothing_to_do",
        "Keeps {before:partition}: they suit {slots:slot}.",
    ),
    "gain_too_small": Reason(
        "nothing_to_do",
        "Keeps {before:partition} on {slots:slot}: {after} would take {after_ms:ms} instead of "
        "{before_ms:ms} per batch, less than {min_gain_percent} % saved.",
    ),
    "cost_too_high": Reason(
        "nothing_to_do",
        "Keeps {before:partition} on {slots:slot}: {after} would save {saved_total_ms:ms} within "
        "{horizon_ms:ms}, and the restart costs {cost_ms:ms}.",
    ),
    # Rescales
    "in_place": Reason(
        "rescale_in_place",
        "Goes from {before:partition} to {after:partition} in place: {slots:slot}.",
    ),
    "restart_pays": Reason(
        "rescale_restart",
        "Restarts with {after:partition} instead of {before} on {slots:slot}: a batch should take "
        "{after_ms:ms} instead of {before_ms:ms}, the restart costs {cost_ms:ms}.",
    ),
    "restart_always": Reason(
        "rescale_restart",
        "Restarts with {after:partition} instead of {before} on {slots:slot}: "
        "spark.elastic.adaptiveScheduler.rescalePolicy is always.",
    ),
    "restart_into_bounds": Reason(
        "rescale_restart",
        "Restarts with {after:partition} instead of {before} on {slots:slot}: its bounds are {lower} and "
        "{upper} now.",
    ),
    "stopped_again": Reason(
        "rescale_restart",
        "Is told again to stop for its rescale to {after:partition}: the first order may be lost.",
    ),
    "rescaled": Reason(
        "info",
        "Runs with {after:partition} instead of {before}, after a pause of {took_ms:ms}.",
    ),
    # Outcomes
    "start_failed": Reason(
        "failed",
        "Could not start with {after:partition}, goes on with what it had: {error}",
    ),
    "stop_failed": Reason(
        "failed",
        "Could not be stopped for its rescale to {after:partition}, runs on: {error}",
    ),
    "in_place_failed": Reason(
        "failed",
        "Could not be set to {after:partition} in place: {error}",
    ),
    "end_failed": Reason("failed", "Could not be ended: {error}"),
    # Failures
    "failure_restart": Reason(
        "failed",
        "Failed and is to start again in {backoff_ms:ms}: {error}",
    ),
    "failure_no_restart": Reason(
        "failed",
        "Failed, and the restart strategy allows no further start: {error}",
    ),
    "failure_poison": Reason(
        "failed",
        "Failed {tries} times in the same way at the same offsets, {offsets}; another start would, too: "
        "{error}",
    ),
    "failure_analysis": Reason("failed", "Failed for good, a new start would meet the same plan: {error}"),
    "failure_incompatible_state": Reason(
        "failed", "Failed for good, the query does not fit the state of its checkpoint: {error}"
    ),
    "failure_missing_checkpoint": Reason(
        "failed", "Failed for good, files of its checkpoint are missing: {error}"
    ),
    "failure_fatal": Reason("failed", "Failed for good: {error}"),
    "failure_no_resources": Reason(
        "failed",
        "Fails: it needs {needed:slot}, and after {waited_ms:ms} there are {slots}. Lower its lower bound, "
        "or raise spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout.",
    ),
    "canceling": Reason("info", "Is being stopped for {by}."),
    "canceled": Reason("finished", "Was stopped."),
    # Savepoints
    "savepoint": Reason("info", "Takes a savepoint into {target}."),
    "stop_with_savepoint": Reason("info", "Is being stopped with a savepoint into {target}, for {by}."),
    "stopping_again": Reason(
        "info", "Is stopped again with a savepoint into {target}: the order may have been lost."
    ),
    "taking_savepoint": Reason("held", "Has stopped, and its savepoint is being taken into {target}."),
    "savepoint_taken": Reason("info", "Its savepoint of micro-batch {batch} is complete: {path}"),
    "savepoint_failed": Reason("failed", "No savepoint was taken: {error}"),
    "savepoint_refused": Reason("failed", "Takes no savepoint while it is {state}: ask again when it runs."),
    "savepoint_nowhere": Reason(
        "failed",
        "Takes no savepoint: nobody said where to. Name a folder, or set spark.elastic.savepointDir.",
    ),
    "stopped_with_savepoint": Reason("finished", "Was stopped with the savepoint {path}"),
    # Bounds
    "bounds_requested": Reason("info", "New bounds, asked for by {by}: {bounds}."),
    "source_bounds": Reason("info", "From the next micro-batch on: {bounds}."),
    "source_not_divisible": Reason(
        "info",
        "Cannot read {source} ({what}) in {least:task} at least: what Spark makes of it cannot be divided.",
    ),
    "policy_file_read": Reason("info", "The policy file {path} counts from now on."),
    "policy_file_refused": Reason(
        "failed", "The policy file {path} is left out, what counted before still does: {errors}"
    ),
    "bounds_refused": Reason(
        "failed", "The bounds that are declared for this query cannot be used: {errors}"
    ),
    # Executors
    "executors_requested": Reason(
        "info",
        "Asks the cluster for {wanted:executor} in all, {before} are here: so many are needed for the slots "
        "that the queries have declared.",
    ),
    "executors_released": Reason(
        "info",
        "Gives executors {released} back: the slots that the queries have declared need {wanted:executor}.",
    ),
    "executors_left_alone": Reason(
        "info",
        "Neither requests nor releases executors: spark.dynamicAllocation.enabled does that already.",
        once=True,
    ),
    "executors_refused": Reason("failed", "The cluster did not do what was asked: {error}"),
    "adopted": Reason(
        "info",
        "Found running with {before:partition}; goes on from there.",
    ),
    "started_unasked": Reason(
        "info",
        "Was started with {after:partition} before it had an answer.",
    ),
    "finished": Reason("finished", "Is finished."),
    "query_failed": Reason("finished", "Failed: {error}"),
    "superseded": Reason("finished", "Its run is over: the driver shows another one, or none."),
    "unexpected": Reason(
        "info", "Left out a {event} event, which makes no sense while the query is {state}."
    ),
    # Batch: how many partitions a shuffle writes
    "initial_from_bytes": Reason(
        "stage",
        "Writes {after:partition} instead of {before}: {bytes:bytes} are expected, {tasks:task} of at most "
        "{volume:bytes} read them on {slots:slot}.",
    ),
    "initial_bounded": Reason(
        "stage",
        "Writes {after:partition} instead of {before}: {bytes:bytes} on {slots:slot} ask for {wanted}, and "
        "the bounds are {lower} and {upper}.",
    ),
    "initial_most": Reason(
        "stage",
        "Writes {after:partition} instead of {before}: as many as tasks may ever read them "
        "(spark.elastic.batch.preset is flink).",
    ),
    "initial_explicit": Reason(
        "nothing_to_do",
        "Writes the {before:partition} that the application has chosen for exchange {exchanges}.",
    ),
    "initial_fixed": Reason(
        "nothing_to_do",
        "Writes {before:partition}: the application sets spark.sql.shuffle.partitions to {chosen}, and "
        "spark.elastic.explicitParallelism is fixed.",
    ),
    "initial_unknown": Reason(
        "nothing_to_do",
        "Writes {before:partition}, as Spark has planned: the size of exchange {exchanges} is not known.",
    ),
    "initial_nothing": Reason("nothing_to_do", "Has no exchange that writes partitions."),
    "initial_off": Reason(
        "nothing_to_do", "Writes {before:partition}, as Spark has planned: the choice of them is off."
    ),
    # Batch: which ranges are read
    "ranges_balanced": Reason(
        "stage",
        "Reads {before:partition} in {after:task} on {slots:slot}: {bytes:bytes}, at most {volume:bytes} per "
        "task; the largest has {largest:bytes}, {ratio} times the mean.",
    ),
    "ranges_bounded": Reason(
        "stage",
        "Reads {before:partition} in {after:task} on {slots:slot}: {bytes:bytes} ask for more, and the upper "
        "bound is {upper}; the largest has {largest:bytes}, {ratio} times the mean.",
    ),
    "ranges_split": Reason(
        "stage",
        "Reads {before:partition} in {after:task} on {slots:slot}, with {split:partition} split that far "
        "exceeded the others; the largest task has {largest:bytes}, {ratio} times the mean.",
    ),
    "ranges_skewed": Reason(
        "stage",
        "Reads {before:partition} in {after:task} on {slots:slot}; {skewed:partition} far larger than the "
        "others cannot be split, {kept}; the largest task has {largest:bytes}, {ratio} times the mean.",
    ),
    "ranges_as_written": Reason(
        "nothing_to_do",
        "Reads each of {before:partition} in a task of its own: {bytes:bytes} on {slots:slot}, at most "
        "{volume:bytes} per task.",
    ),
    "ranges_explicit": Reason(
        "nothing_to_do",
        "Reads each of the {before:partition} that the application has chosen for exchange {exchanges}.",
    ),
    "ranges_counts_differ": Reason(
        "nothing_to_do",
        "Is left to Spark: its exchanges have different numbers of partitions, {counts}.",
    ),
    "ranges_unknown": Reason(
        "nothing_to_do",
        "Is left to Spark: some of the {before:partition} of exchange {exchanges} have no known size.",
    ),
    "ranges_left_skew": Reason(
        "nothing_to_do",
        "Is left to Spark, which splits the skewed ones of {before:partition} for a join: {bytes:bytes}.",
    ),
    "ranges_left_local": Reason(
        "nothing_to_do",
        "Is left to Spark, which reads {bytes:bytes} where the map tasks have written them.",
    ),
    "ranges_single": Reason("nothing_to_do", "Reads its only partition, {bytes:bytes}, in one task."),
    "ranges_nothing": Reason("nothing_to_do", "Has no partitions to share out between tasks."),
    "ranges_off": Reason("nothing_to_do", "Is left to Spark: the choice of ranges is off."),
    # Batch: scans of files
    "split_from_bytes": Reason(
        "stage",
        "Scans {bytes:bytes} in about {after:task} of {split:bytes} on {slots:slot}.",
    ),
    "split_bounded": Reason(
        "stage",
        "Scans {bytes:bytes} in about {after:task} of {split:bytes}: {wanted} would be right, and no source "
        "may have more.",
    ),
    "split_unknown": Reason(
        "nothing_to_do", "Is split by Spark: how many bytes there are to scan is not known."
    ),
    "split_no_slots": Reason("nothing_to_do", "Is split by Spark: there are no slots yet for {bytes:bytes}."),
    "split_off": Reason("nothing_to_do", "Is split by Spark: the choice of split sizes is off."),
    "offsets_divided": Reason(
        "stage",
        "Reads Kafka in at least {after:task} on {slots:slot}: where it has fewer partitions, the largest "
        "are divided.",
    ),
    "offsets_by_partition": Reason(
        "nothing_to_do", "Reads Kafka in one task per partition: the preset divides none."
    ),
    "offsets_late": Reason(
        "nothing_to_do",
        "Reads Kafka in one task per partition: only the tasks are to find out which offset is the latest. "
        "Name the ending offsets, or set spark.elastic.batch.sources.kafkaLatest=true.",
    ),
    "offsets_no_slots": Reason(
        "nothing_to_do", "Reads Kafka in one task per partition: there are no slots yet."
    ),
}

SKEW_KEPT: Mapping[str, str] = {
    "off": "that is switched off",
    "no_join": "they belong to no join of two shuffles",
    "join": "this type of join needs each whole on both sides",
    "keyed": "what follows relies on their keys being together",
    "maps": "their map tasks or the bounds do not allow it",
}

ADVICE = "{message} Only advice (spark.elastic.adviseOnly): nothing was changed."
NO_LIMIT = "without limit"
SAVED_BEFORE = "The query was being stopped and failed; all that it had committed is in the savepoint {path}"
LIMIT = "until {wait_ms:ms} have passed"
ALTERNATIVE = "{partitions:partition}: {batch_ms:ms} per batch"


def duration(ms: float) -> str:
    """Write a duration as the sentences do."""
    for unit, name in ((3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if ms >= unit:
            return f"{ms / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{ms:.0f} ms"


def _size(number: int) -> str:
    for shift, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 1 << shift:
            return f"{number / (1 << shift):.1f}".removesuffix(".0") + f" {name}"
    return f"{number} B"


def _word(value: Any, kind: str) -> str:
    if not kind:
        return str(value)
    if kind == "ms":
        return duration(float(value))
    if kind == "bytes":
        return _size(int(value))
    return f"{value} {kind}" if value == 1 else f"{value} {kind}s"


@cache
def _parts(sentence: str) -> tuple[tuple[str, str | None, str], ...]:
    """Take a sentence apart, once: the text before a value, the value's name (None at the end), its kind."""
    return tuple((text, name, kind or "") for text, name, kind, _ in Formatter().parse(sentence))


def fill(sentence: str, **values: object) -> str:
    """Fill in a sentence of the catalogue. Raises KeyError if a value is missing."""
    filled = []
    for text, name, kind in _parts(sentence):
        filled.append(text if name is None else text + _word(values[name], kind))
    return "".join(filled)


def message(code: str, **values: object) -> str:
    """Say the sentence of a reason. Raises KeyError for a code outside the catalogue or a missing value."""
    return fill(REASONS[code].sentence, **values)
