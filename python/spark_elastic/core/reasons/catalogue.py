"""The catalogue: every reason that a decision can have, and the one sentence that says it.

Logs, history, UI and ``explain`` show these sentences and add none of their own. Reasons of batch stages
and policies are in files of their own. A sentence says what happens and why, in under 15 words if possible;
`reason.py` says what it may contain.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.reasons.policies import POLICY_REASONS
from spark_elastic.core.reasons.reason import Reason, fill

# ---- Bounds: who declared which, what became of them, and how slots are shared.


BOUNDS_REASONS: Mapping[str, Reason] = {
    "bounds_requested": Reason("info", "New bounds from {by}: {bounds}."),
    "bounds_dropped": Reason("info", "Requested bounds withdrawn by {by}; the configured ones apply."),
    "bounds_recalled": Reason("info", "Restored the requested bounds stored with the checkpoint: {bounds}."),
    "kept_bounds_outdated": Reason(
        "info",
        "Dropped the bounds stored with the checkpoint, {bounds}: the policy file has changed since.",
    ),
    "kept_bounds_unusable": Reason(
        "failed", "Ignored the bounds stored with the checkpoint, they cannot be read: {error}"
    ),
    "bounds_not_kept": Reason(
        "failed",
        "Could not store the requested bounds with the checkpoint, a new driver starts without them: {error}",
    ),
    "original_dropped": Reason(
        "info",
        "Delete the original of the converted state: spark.elastic.stateStore.keepOriginal has passed.",
    ),
    "original_not_dropped": Reason(
        "failed", "Could not delete the original of the converted state, it stays: {error}"
    ),
    "slots_shared": Reason(
        "info",
        "May use {slots} of {total_slots:slot}: lower bounds reserve {reserved}, the rest is shared "
        "by weight ({weight} of {weights}).",
    ),
    "source_bounds": Reason("info", "Source bounds from the next micro-batch: {bounds}."),
    "sources_not_bounded": Reason(
        "failed", "Source bounds not applied, sources are read as before: {error}", once=True
    ),
    "source_not_divisible": Reason(
        "info",
        "Cannot read {source} ({what}) in {least:task} or more: its partitions cannot be divided.",
    ),
    "policy_file_read": Reason("info", "Policy file {path} loaded."),
    "policy_file_refused": Reason(
        "failed", "Policy file {path} rejected, the previous settings stay in force: {errors}"
    ),
    "own_settings": Reason("info", "Settings for this query: {settings}."),
    "no_own_settings": Reason("info", "Settings for this query removed, those of the application apply."),
    "own_settings_refused": Reason("failed", "Settings for this query rejected and ignored: {errors}"),
    "bounds_refused": Reason("failed", "Bounds for this query rejected: {errors}"),
    "sources_follow": Reason(
        "rescale_in_place",
        "Read sources in up to {after:task} on {slots:slot} from the next micro-batch: the query has "
        "no shuffle.",
    ),
    "sources_fit": Reason(
        "nothing_to_do",
        "Keep reading sources in up to {after:task}: fits {slots:slot}, the query has no shuffle.",
    ),
    "sources_stay": Reason(
        "nothing_to_do",
        "Slots beyond the source's tasks stay empty: the query has no shuffle, and {stuck} cannot be "
        "divided; {help}.",
        once=True,
    ),
    "sources_bring_executors": Reason(
        "nothing_to_do",
        "Keep Spark's read tasks: with spark.dynamicAllocation.enabled, Spark requests executors only "
        "for waiting tasks.",
    ),
    "other_sources_stay": Reason(
        "nothing_to_do",
        "Other sources are read as before: {stuck} cannot be divided; {help}.",
        once=True,
    ),
    "files_stay_whole": Reason(
        "nothing_to_do",
        "Files of {stuck} cannot be split (gzip, for example), so one task reads each. Use smaller "
        "files, or a format that can be split.",
        once=True,
    ),
}


# ---- Failures of queries.


FAILURE_REASONS: Mapping[str, Reason] = {
    "failure_restart": Reason(
        "failed",
        "Failed, restarting in {backoff_ms:ms}: {error}",
    ),
    "failure_no_restart": Reason(
        "failed",
        "Failed, the restart strategy allows no further attempt: {error}",
    ),
    "failure_poison": Reason(
        "failed",
        "Failed {tries} times in the same way at the same offsets, {offsets}, and would again; not "
        "restarted: {error}",
    ),
    "failure_analysis": Reason("failed", "Failed, not restarted, the plan itself is invalid: {error}"),
    "failure_incompatible_state": Reason(
        "failed", "Failed, not restarted, the query does not fit the state in its checkpoint: {error}"
    ),
    "failure_missing_checkpoint": Reason(
        "failed", "Failed, not restarted, files of the checkpoint are missing: {error}"
    ),
    "failure_fatal": Reason("failed", "Failed, not restarted: {error}"),
    "failure_no_resources": Reason(
        "failed",
        "Failed: needs {needed:slot}, has {slots} after {waited_ms:ms}. {advice}, or raise "
        "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout ({wait_ms:ms}).",
    ),
    "failure_others_first": Reason(
        "failed",
        "Failed: needs {needed:slot}, but lower bounds of queries ahead of it reserve {ahead} of "
        "{total_slots} after {waited_ms:ms}. Lower a bound, raise the query's priority, or raise "
        "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout.",
    ),
    # Only the state store of our choice fails so.
    "failure_new_store": Reason(
        "failed",
        "Failed in the state store that spark-elastic chose: a task opened it twice, or read only "
        "some of its rows. The next start uses Spark's own store and your number of partitions; its "
        "state cannot be re-partitioned. To allow that, cache what foreachBatch reads more than once, "
        "read all rows, and use a new checkpoint: {error}",
    ),
    "failure_our_store": Reason(
        "failed",
        "Failed in the state store that spark-elastic chose: a task opened it twice, or read only "
        "some of its rows. Cache what foreachBatch reads more than once, and read all rows; or set "
        "spark.elastic.stateStore=unchanged and use a new checkpoint: {error}",
    ),
    "store_not_kept": Reason(
        "failed",
        "Could not note with the checkpoint that the next start uses Spark's own state store; set "
        "spark.elastic.stateStore=unchanged: {error}",
    ),
}


REASONS: Mapping[str, Reason] = {
    # Starts
    "start_per_slot": Reason(
        "start",
        "Start with {after:partition} on {slots:slot} (session setting: {session}).",
    ),
    "start_bounded": Reason(
        "start",
        "Start with {after:partition} on {slots:slot}: {bound_by} allows no more.",
    ),
    "start_for_growth": Reason(
        "start",
        "Start with {after:partition} on {slots:slot} (session setting: {session}): the count cannot "
        "change later, so it leaves room for more slots.",
    ),
    "start_repartitioned": Reason(
        "start",
        "Re-partition state {before} → {after:partition} before starting on {slots:slot}: batch "
        "{before_ms:ms} → {after_ms:ms} expected.",
    ),
    "start_converted": Reason(
        "start",
        "Convert the checkpoint to RocksDB, {before} → {after:partition}, before starting on {slots:slot}.",
    ),
    "start_checkpoint_same": Reason(
        "start",
        "Start with the checkpoint's {before:partition}: fits {slots:slot}.",
    ),
    "start_checkpoint_kept": Reason(
        "start",
        "Start with the checkpoint's {before:partition}: {after} would save {saved_ms:ms} of "
        "{before_ms:ms} per batch, too little for a rescale of {cost_ms:ms}.",
    ),
    "start_checkpoint_deferred": Reason(
        "start",
        "Start with the checkpoint's {before:partition}, scale to {after} later: no more than "
        "{most:rescale} may run at once (spark.elastic.adaptiveScheduler.maxConcurrentRescales).",
    ),
    "start_checkpoint_pending": Reason(
        "start",
        "Start with the checkpoint's {before:partition}: the uncommitted batch must run before "
        "scaling to {after}.",
    ),
    "start_without_resources": Reason(
        "start",
        "Start unchanged: {slots:slot} cannot meet the lower bound, Spark waits for executors itself.",
    ),
    "start_for_executors": Reason(
        "start",
        "Start with {after:partition} on {slots:slot}: with spark.dynamicAllocation.enabled, Spark "
        "requests executors only for waiting tasks.",
    ),
    "start_after_failure": Reason(
        "start",
        "Restart from the checkpoint with {before:partition}, as before.",
    ),
    # What is left alone, and why
    "untouched_off": Reason(
        "nothing_to_do",
        "Left to plain Spark: spark.elastic.schedulerMode is off for this query.",
        once=True,
    ),
    "untouched_fixed": Reason(
        "nothing_to_do",
        "Not changed: the application sets spark.sql.shuffle.partitions to {explicit}, and "
        "spark.elastic.explicitParallelism is fixed.",
        once=True,
    ),
    "untouched_trigger": Reason(
        "nothing_to_do",
        "Not changed: a query with a {trigger} trigger keeps its partitions.",
        once=True,
    ),
    "untouched_stateless": Reason(
        "nothing_to_do",
        "Not changed: a stateless query keeps its partitions while it runs.",
        once=True,
    ),
    "never_rescaled": Reason(
        "nothing_to_do",
        "Keep {before:partition} on {slots:slot}: a query with a {trigger} trigger ends by itself and "
        "is not rescaled.",
        once=True,
    ),
    "no_repartition_global": Reason(
        "nothing_to_do",
        "Keep the checkpoint's {before:partition}: an operator without keys, such as "
        "groupBy().count() or limit, has all its state in one.",
        once=True,
    ),
    "no_repartition_spark": Reason(
        "nothing_to_do",
        "Keep the checkpoint's {before:partition}: re-partitioning state needs Spark 4.2 or later.",
        once=True,
    ),
    "no_repartition_unconverted": Reason(
        "nothing_to_do",
        "Keep the checkpoint's {before:partition}: its state is in Spark's HDFS-backed store. Set "
        "spark.elastic.stateStore.convert=atStart to convert it when the query starts, or stop the query and "
        "type 'spark-elastic checkpoint convert CHECKPOINT --to rocksdb'.",
        once=True,
    ),
    "no_repartition_chosen": Reason(
        "nothing_to_do",
        "Keep the checkpoint's {before:partition}: its state is in Spark's HDFS-backed store, which the "
        "session's settings name. To convert it, remove them, stop the query and type "
        "'spark-elastic checkpoint convert CHECKPOINT --to rocksdb'.",
        once=True,
    ),
    "no_repartition_needed": Reason(
        "nothing_to_do",
        "Keep the checkpoint's {before:partition}: its state is in Spark's HDFS-backed store, which this "
        "query needs (docs/checkpoints.md says why).",
        once=True,
    ),
    "no_repartition_provider": Reason(
        "nothing_to_do",
        "Keep the checkpoint's {before:partition}: re-partitioning needs state in RocksDB, not in the "
        "{provider} provider.",
        once=True,
    ),
    "explicit_ignored": Reason(
        "info",
        "spark.sql.shuffle.partitions is {explicit}, and slots decide instead: "
        "spark.elastic.explicitParallelism is ignore. Set it to upperBound or fixed to change that.",
        once=True,
    ),
    # Waiting
    "waiting_for_resources": Reason(
        "held", "Waiting for resources ({limit}): {slots} of {needed:slot} available."
    ),
    "waiting_for_others": Reason(
        "held",
        "Waiting for resources ({limit}): needs {needed:slot}, but lower bounds of queries ahead of "
        "it reserve {ahead} of {total_slots}.",
    ),
    "waiting_for_more": Reason(
        "held",
        "Waiting up to {stabilization_ms:ms} for more than {slots:slot} before starting; {needed} are "
        "enough.",
    ),
    "all_executors_lost": Reason(
        "held",
        "Keep {before:partition}: all executors are lost, Spark waits for new ones.",
    ),
    "below_lower_bounds": Reason(
        "held",
        "Keep {before:partition}: {slots:slot} cannot meet the lower bound.",
    ),
    "lower_bounds_of_others": Reason(
        "held",
        "Keep {before:partition}: lower bounds need {needed:slot}, but queries ahead of it reserve "
        "{ahead} of {total_slots}.",
    ),
    "backing_off": Reason("held", "Failed, restarting from the checkpoint in {backoff_ms:ms}."),
    "cooldown": Reason(
        "held",
        "Waiting until {cooldown_ms:ms} after the last start before scaling {before} → {after:partition}.",
    ),
    "stabilizing": Reason(
        "held",
        "Waiting {stabilization_ms:ms} for resources to settle before scaling {before} → {after:partition}.",
    ),
    "awaiting_batch": Reason(
        "held",
        "Waiting for the running micro-batch to end before scaling {before} → {after:partition}.",
    ),
    "rescale_queued": Reason(
        "held",
        "Waiting to scale {before} → {after:partition}: no more than {most:rescale} may run at once "
        "(spark.elastic.adaptiveScheduler.maxConcurrentRescales).",
    ),
    "recovering": Reason(
        "held",
        "Waiting for a whole micro-batch without the lost executors before scaling {before} → "
        "{after:partition}.",
    ),
    "increase_too_small": Reason(
        "held",
        "Keep {before:partition}: {after} would add {increase} in total, less than {min_increase} "
        "(spark.elastic.adaptiveScheduler.minParallelismIncrease).",
    ),
    "failed_before": Reason(
        "held",
        "Keep {before:partition}: scaling to {after} has failed. Retried after a pause, unless it "
        "failed too often, and when slots or bounds change.",
    ),
    # Nothing to do
    "parallelism_fits": Reason(
        "nothing_to_do",
        "Keep {before:partition}: fits {slots:slot}.",
    ),
    "gain_too_small": Reason(
        "nothing_to_do",
        "Keep {before:partition} on {slots:slot}: {after} would take {after_ms:ms} instead of "
        "{before_ms:ms} per batch, a gain below {min_gain_percent} %.",
    ),
    "cost_too_high": Reason(
        "nothing_to_do",
        "Keep {before:partition} on {slots:slot}: {after} would save {saved_total_ms:ms} within "
        "{horizon_ms:ms}, the rescale costs {cost_ms:ms}.",
    ),
    # Rescales
    "in_place": Reason(
        "rescale_in_place",
        "Scale {before} → {after:partition} in place on {slots:slot}.",
    ),
    "rescale_pays": Reason(
        "rescale_state",
        "Scale {before} → {after:partition} on {slots:slot}: batch {before_ms:ms} → {after_ms:ms} "
        "expected, the rescale costs {cost_ms:ms}.",
    ),
    "rescale_always": Reason(
        "rescale_state",
        "Scale {before} → {after:partition} on {slots:slot}: "
        "spark.elastic.adaptiveScheduler.rescalePolicy is always.",
    ),
    "rescale_overdue": Reason(
        "rescale_state",
        "Scale {before} → {after:partition} on {slots:slot}: no rescale for "
        "spark.elastic.adaptiveScheduler.scalingInterval.max, so any growth counts.",
    ),
    "rescale_into_bounds": Reason(
        "rescale_state",
        "Scale {before} → {after:partition} on {slots:slot}: bounds are {lower} to {upper}.",
    ),
    "rescaled_again": Reason(
        "rescale_state",
        "Order to scale to {after:partition} sent again: the first may be lost.",
    ),
    "rescale_changed": Reason(
        "rescale_state",
        "Scale to {after:partition} instead: now {slots:slot}.",
    ),
    "rescale_called_off": Reason(
        "info",
        "Keep {before:partition}: the pending rescale is cancelled.",
    ),
    "rescale_unfinished": Reason(
        "info",
        "Rescale {before} → {after:partition} not finished after {patience_ms:ms}: other queries no "
        "longer wait for it.",
    ),
    "rescaled": Reason(
        "info",
        "Scaled {before} → {after:partition}, paused {took_ms:ms}.",
    ),
    "rescaled_prepared": Reason(
        "info",
        "Scaled {before} → {after:partition}: paused {took_ms:ms}, prepared in {copy_ms:ms}.",
    ),
    "rescale_prepared": Reason(
        "info",
        "State copied {before} → {after:partition} in {copy_ms:ms}, switching over at the next boundary.",
    ),
    "rescaled_unheard": Reason(
        "info",
        "Scaled {before} → {after:partition} while the policy engine was away.",
    ),
    # Outcomes
    "start_failed": Reason(
        "failed",
        "Could not start with {after:partition}, continuing with the previous count: {error}",
    ),
    "rescale_failed": Reason(
        "failed",
        "Could not scale to {after:partition}, continuing as before and retrying in {again_ms:ms}: {error}",
    ),
    "preparation_failed": Reason(
        "failed",
        "Could not copy the state {before} → {after:partition}, moving it in a pause: {error}",
    ),
    "rescale_given_up": Reason(
        "failed",
        "Could not scale to {after:partition}, continuing as before until slots or bounds change: {error}",
    ),
    "in_place_failed": Reason(
        "failed",
        "Could not scale to {after:partition} in place: {error}",
    ),
    "end_failed": Reason("failed", "Could not stop the query: {error}"),
    "canceling": Reason("info", "Stopping, requested by {by}."),
    "canceled": Reason("finished", "Stopped."),
    # Savepoints
    "savepoint": Reason("info", "Taking a savepoint into {target}."),
    "stop_with_savepoint": Reason("info", "Stopping with a savepoint into {target}, requested by {by}."),
    "stopping_again": Reason(
        "info", "Order to stop with a savepoint into {target} sent again: the first may be lost."
    ),
    "taking_savepoint": Reason("held", "Failed, but first completing its savepoint into {target}."),
    "saving_again": Reason("info", "Savepoint ordered again: its result may be lost."),
    "savepoint_taken": Reason("info", "Savepoint of micro-batch {batch} complete: {path}"),
    "savepoint_failed": Reason("failed", "Savepoint failed: {error}"),
    "savepoint_refused": Reason(
        "failed", "Savepoint refused while the query is {state}: ask again when it runs."
    ),
    "savepoint_nowhere": Reason(
        "failed",
        "Savepoint refused, no folder given: name one, or set spark.elastic.savepointDir.",
    ),
    "stopped_with_savepoint": Reason("finished", "Stopped with savepoint {path}"),
    # Executors
    "executors_requested": Reason(
        "info",
        "Request {before} → {wanted:executor}: declared bounds need them.",
    ),
    "executors_replaced": Reason(
        "info",
        "Request {wanted:executor}: replacing {leaving} being decommissioned.",
    ),
    "executors_unlimited": Reason(
        "info",
        "Withdraw the request for executors, {before} running: a query without an upper bound uses all.",
    ),
    "executors_released": Reason(
        "info",
        "Release executors {released}: declared bounds need {wanted:executor}.",
    ),
    "executors_left_alone": Reason(
        "info",
        "Executors are left to spark.dynamicAllocation.enabled. Set it to false to let spark-elastic "
        "request and release them.",
        once=True,
    ),
    "executors_may_be_removed": Reason(
        "info",
        "Queries use the executors that run; spark.dynamicAllocation.enabled adds them for waiting "
        "tasks and removes idle ones. Set it to false to let queries follow the slots.",
        once=True,
    ),
    "executors_refused": Reason("failed", "The cluster refused or failed the request for executors: {error}"),
    "adopted": Reason(
        "info",
        "Found running with {before:partition}, now managed.",
    ),
    "started_unasked": Reason(
        "info",
        "Started with {after:partition} before the decision arrived.",
    ),
    "finished": Reason("finished", "Finished."),
    "query_failed": Reason("finished", "Failed: {error}"),
    "superseded": Reason("finished", "Run is over: the driver shows another run, or none."),
    "unexpected": Reason("info", "Ignored event {event}, unexpected while the query is {state}."),
    **BOUNDS_REASONS,
    **FAILURE_REASONS,
    **POLICY_REASONS,
}

EXPECTED = "{message} Batch {before_ms:ms} → {after_ms:ms} expected."
COPIED_FIRST = "{message} Its state is copied first, while micro-batches run."
ADVICE = "{message} Advice only (spark.elastic.adviseOnly), nothing is changed."
NO_LIMIT = "no time limit"
LIMIT = "at most {wait_ms:ms}"
MORE = "Add executors"
FEWER = "Lower its lower bound, or add executors"
SAVED_BEFORE = "The query failed while it was being stopped; all that it had committed is in savepoint {path}"
ALTERNATIVE = "{partitions:partition}: {batch_ms:ms} per batch"


def advised(said: str, *, only: bool) -> str:
    """Say of a decision that is `only` advice that nothing comes of it."""
    return fill(ADVICE, message=said) if only else said


def copied_first(said: str, *, copies: bool) -> str:
    """Say of a rescale that it `copies` the state before it pauses the query."""
    return fill(COPIED_FIRST, message=said) if copies else said


def expected(said: str, **values: object) -> str:
    """Say of a rescale that has to wait what it is to gain: what was said before it may have seen less."""
    return fill(EXPECTED, message=said, **values)


def message(code: str, **values: object) -> str:
    """Say the sentence of a reason. Raises KeyError for a code outside the catalogue or a missing value."""
    return fill(REASONS[code].sentence, **values)
