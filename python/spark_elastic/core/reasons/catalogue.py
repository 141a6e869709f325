"""The catalogue: every reason that a decision can have, and the one sentence that says it.

Logs, history, UI and ``explain`` show these sentences and make up none of their own. Those about batch
stages and policies stand in files beside this one. `reason.py` says what a sentence may have in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.reasons.policies import POLICY_REASONS
from spark_elastic.core.reasons.reason import Reason, fill

# What is said of bounds: who has declared which, what becomes of them, and how slots are shared.


BOUNDS_REASONS: Mapping[str, Reason] = {
    "bounds_requested": Reason("info", "New bounds, asked for by {by}: {bounds}."),
    "bounds_dropped": Reason(
        "info", "The bounds that were asked for no longer count, says {by}: what is configured does."
    ),
    "bounds_recalled": Reason(
        "info", "Has the bounds that were asked for before and kept beside its checkpoint: {bounds}."
    ),
    "kept_bounds_outdated": Reason(
        "info",
        "The bounds that are kept beside its checkpoint, {bounds}, no longer count: the policy file says "
        "something else about it than at that time.",
    ),
    "kept_bounds_unusable": Reason(
        "failed", "The bounds that are kept beside its checkpoint cannot be read, and do not count: {error}"
    ),
    "bounds_not_kept": Reason(
        "failed",
        "The bounds that were asked for could not be kept beside its checkpoint, so another driver does not "
        "begin with them: {error}",
    ),
    "slots_shared": Reason(
        "info",
        "Can use {slots} of {total_slots:slot}: the lower bounds of all queries take {reserved}, and the "
        "rest is divided by weight, {weight} of {weights} being its own.",
    ),
    "source_bounds": Reason("info", "From the next micro-batch on: {bounds}."),
    "sources_not_bounded": Reason("failed", "Its sources are read as before: {error}", once=True),
    "source_not_divisible": Reason(
        "info",
        "Cannot read {source} ({what}) in {least:task} at least: what Spark makes of it cannot be divided.",
    ),
    "policy_file_read": Reason("info", "The policy file {path} counts from now on."),
    "policy_file_refused": Reason(
        "failed", "The policy file {path} is left out, what counted before still does: {errors}"
    ),
    "own_settings": Reason("info", "Has settings of its own: {settings}."),
    "no_own_settings": Reason("info", "Has the settings of the application from now on."),
    "own_settings_refused": Reason(
        "failed", "The settings that are said for this query cannot be used, and are left out: {errors}"
    ),
    "bounds_refused": Reason(
        "failed", "The bounds that are declared for this query cannot be used: {errors}"
    ),
    "sources_follow": Reason(
        "rescale_in_place",
        "Has no shuffle, so its sources are read in up to {after:task} from the next micro-batch on, one for "
        "each of {slots:slot}, as far as there is enough to read.",
    ),
    "sources_fit": Reason(
        "nothing_to_do",
        "Has no shuffle, and its sources are read in up to {after:task}: they suit {slots:slot}.",
    ),
    "sources_stay": Reason(
        "nothing_to_do",
        "Has no shuffle, and what reads its sources cannot be divided ({stuck}), so slots beyond that stay "
        "empty: {help}.",
        once=True,
    ),
    "sources_bring_executors": Reason(
        "nothing_to_do",
        "Has no shuffle, and its sources are read in as many tasks as in plain Spark: with "
        "spark.dynamicAllocation.enabled Spark requests executors only for tasks that wait.",
    ),
    "other_sources_stay": Reason(
        "nothing_to_do",
        "What reads the others of its sources cannot be divided ({stuck}), so these are read as before: "
        "{help}.",
        once=True,
    ),
    "files_stay_whole": Reason(
        "nothing_to_do",
        "Files of {stuck} cannot be split, as is so with gzip, and each is read in one task: other slots "
        "read nothing. More and smaller files would help, or a format that can be split.",
        once=True,
    ),
}


# What is said of a query that fails.


FAILURE_REASONS: Mapping[str, Reason] = {
    "failure_restart": Reason(
        "failed",
        "Failed and is to start again in {backoff_ms:ms}: {error}",
    ),
    "failure_no_restart": Reason(
        "failed",
        "Failed, and the restart strategy allows no further attempt: {error}",
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
        "Fails: it needs {needed:slot}, and after {waited_ms:ms} there are {slots}. {advice}, or raise "
        "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout, which is {wait_ms:ms}.",
    ),
    "failure_others_first": Reason(
        "failed",
        "Fails: it needs {needed:slot}, and after {waited_ms:ms} the lower bounds of queries that come first "
        "take {ahead} of {total_slots}. Lower a lower bound, give it a higher priority, or raise "
        "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout.",
    ),
    # Only the state store of our choice fails so.
    "failure_new_store": Reason(
        "failed",
        "Failed for good, in the state store that spark-elastic has chosen: what reads the micro-batch opens "
        "a store twice in one task, or reads only some of its rows. The next start of the query begins with "
        "Spark's own store and your number of partitions, and its state cannot be re-partitioned. To have "
        "that, cache what foreachBatch reads more than once, read all rows, and begin a new checkpoint: "
        "{error}",
    ),
    "failure_our_store": Reason(
        "failed",
        "Failed for good, in the state store that spark-elastic has chosen: what reads the micro-batch opens "
        "a store twice in one task, or reads only some of its rows. Cache what foreachBatch reads more than "
        "once, and read all rows; or set spark.elastic.stateStore=unchanged and begin a new checkpoint: "
        "{error}",
    ),
    "store_not_kept": Reason(
        "failed",
        "That its next start is to begin with Spark's own state store could not be noted beside its "
        "checkpoint; set spark.elastic.stateStore=unchanged: {error}",
    ),
}


REASONS: Mapping[str, Reason] = {
    # Starts
    "start_per_slot": Reason(
        "start",
        "Starts with {after:partition} on {slots:slot} instead of the session's {session}.",
    ),
    "start_bounded": Reason(
        "start",
        "Starts with {after:partition} on {slots:slot}: {bound_by} allows no more.",
    ),
    "start_for_growth": Reason(
        "start",
        "Starts with {after:partition} on {slots:slot}: this count can never be changed, so it leaves room "
        "for more slots; the session's setting of {session} would have been used otherwise.",
    ),
    "start_repartitioned": Reason(
        "start",
        "Moves its state from {before:partition} to {after:partition} before it starts on {slots:slot}: "
        "a batch should take {after_ms:ms} instead of {before_ms:ms}.",
    ),
    "start_checkpoint_same": Reason(
        "start",
        "Starts with the {before:partition} of its checkpoint: that suits {slots:slot}.",
    ),
    "start_checkpoint_kept": Reason(
        "start",
        "Starts with the {before:partition} of its checkpoint for now: {after:partition} would save "
        "{saved_ms:ms} of {before_ms:ms} per batch, too little for what moving the state costs "
        "({cost_ms:ms}).",
    ),
    "start_checkpoint_deferred": Reason(
        "start",
        "Starts with the {before:partition} of its checkpoint and is to go to {after:partition} later: other "
        "queries move their state, no more than {most} may at once "
        "(spark.elastic.adaptiveScheduler.maxConcurrentRescales).",
    ),
    "start_checkpoint_pending": Reason(
        "start",
        "Starts with the {before:partition} of its checkpoint: the last batch was not committed and "
        "has to run before the state can be moved to {after:partition}.",
    ),
    "start_without_resources": Reason(
        "start",
        "Starts as it is: {slots:slot} cannot meet its lower bound, and Spark itself waits for executors.",
    ),
    "start_for_executors": Reason(
        "start",
        "Starts with {after:partition} on {slots:slot}: with spark.dynamicAllocation.enabled Spark requests "
        "executors only for tasks that wait.",
    ),
    "start_after_failure": Reason(
        "start",
        "Starts again from its checkpoint with the {before:partition} that it had.",
    ),
    # What is left alone, and why
    "untouched_off": Reason(
        "nothing_to_do",
        "Left to plain Spark: spark.elastic.schedulerMode of this query is off.",
        once=True,
    ),
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
    "never_rescaled": Reason(
        "nothing_to_do",
        "Keeps its {before:partition} on {slots:slot}: a query with a {trigger} trigger is never "
        "rescaled, it ends by itself.",
        once=True,
    ),
    "no_repartition_global": Reason(
        "nothing_to_do",
        "Keeps the {before:partition} of its checkpoint: an operator without keys, such as "
        "groupBy().count() or limit, has all of its state in one partition, and there is nothing to divide.",
        once=True,
    ),
    "no_repartition_spark": Reason(
        "nothing_to_do",
        "Keeps the {before:partition} of its checkpoint: this Spark cannot re-partition state, Spark 4.2 and "
        "later can.",
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
        "held", "Waits for resources: {slots:slot}, {needed} needed; waits {limit}."
    ),
    "waiting_for_others": Reason(
        "held",
        "Waits for resources: {needed} needed, and of {total_slots:slot} the lower bounds of queries that "
        "come first take {ahead}; waits {limit}.",
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
    "lower_bounds_of_others": Reason(
        "held",
        "Keeps {before:partition} as it is: its lower bounds need {needed:slot}, and of {total_slots} the "
        "lower bounds of queries that come first take {ahead}.",
    ),
    "backing_off": Reason("held", "Has failed; starts again from its checkpoint in {backoff_ms:ms}."),
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
    "rescale_queued": Reason(
        "held",
        "Waits to go from {before:partition} to {after:partition}: other queries move their state, no more "
        "than {most} may at once (spark.elastic.adaptiveScheduler.maxConcurrentRescales).",
    ),
    "recovering": Reason(
        "held",
        "Goes from {before:partition} to {after:partition} after a whole micro-batch without the executors "
        "that were lost.",
    ),
    "increase_too_small": Reason(
        "held",
        "Keeps {before:partition}: with {after} all its vertices together would have {increase} more, and "
        "less than {min_increase} is not worth it (spark.elastic.adaptiveScheduler.minParallelismIncrease).",
    ),
    "failed_before": Reason(
        "held",
        "Keeps {before:partition}: going to {after} has failed. It is tried again after a pause, unless it "
        "has failed too often, and when slots or bounds change.",
    ),
    # Nothing to do
    "parallelism_fits": Reason(
        "nothing_to_do",
        "Keeps {before:partition}: that suits {slots:slot}.",
    ),
    "gain_too_small": Reason(
        "nothing_to_do",
        "Keeps {before:partition} on {slots:slot} for now: {after} would take {after_ms:ms} instead of "
        "{before_ms:ms} per batch, less than {min_gain_percent} % saved.",
    ),
    "cost_too_high": Reason(
        "nothing_to_do",
        "Keeps {before:partition} on {slots:slot} for now: {after} would save {saved_total_ms:ms} within "
        "{horizon_ms:ms}, and the rescale costs {cost_ms:ms}.",
    ),
    # Rescales
    "in_place": Reason(
        "rescale_in_place",
        "Goes from {before:partition} to {after:partition} in place: {slots:slot}.",
    ),
    "rescale_pays": Reason(
        "rescale_state",
        "Goes from {before:partition} to {after:partition} on {slots:slot}: a batch should take "
        "{after_ms:ms} instead of {before_ms:ms}, the rescale costs {cost_ms:ms}.",
    ),
    "rescale_always": Reason(
        "rescale_state",
        "Goes from {before:partition} to {after:partition} on {slots:slot}: "
        "spark.elastic.adaptiveScheduler.rescalePolicy is always.",
    ),
    "rescale_overdue": Reason(
        "rescale_state",
        "Goes from {before:partition} to {after:partition} on {slots:slot}: since the last rescale more time "
        "has passed than spark.elastic.adaptiveScheduler.scalingInterval.max, so any growth counts.",
    ),
    "rescale_into_bounds": Reason(
        "rescale_state",
        "Goes from {before:partition} to {after:partition} on {slots:slot}: its bounds are {lower} and "
        "{upper} now.",
    ),
    "rescaled_again": Reason(
        "rescale_state",
        "Is told again to go to {after:partition}: the first order may be lost.",
    ),
    "rescale_changed": Reason(
        "rescale_state",
        "Is to go to {after:partition} instead, now that it has {slots:slot}.",
    ),
    "rescale_called_off": Reason(
        "info",
        "Stays with {before:partition}: the rescale that was ordered is called off.",
    ),
    "rescale_unfinished": Reason(
        "info",
        "Has not gone from {before:partition} to {after:partition} in {patience_ms:ms}: no other query waits "
        "for that any longer.",
    ),
    "rescaled": Reason(
        "info",
        "Runs with {after:partition} instead of {before}, after a pause of {took_ms:ms}.",
    ),
    "rescaled_unheard": Reason(
        "info",
        "Runs with {after:partition} instead of {before}: its state was moved while nobody listened.",
    ),
    # Outcomes
    "start_failed": Reason(
        "failed",
        "Could not start with {after:partition}, continues with what it had: {error}",
    ),
    "rescale_failed": Reason(
        "failed",
        "Could not go to {after:partition}, continues with what it had and tries again in {again_ms:ms}: "
        "{error}",
    ),
    "rescale_given_up": Reason(
        "failed",
        "Could not go to {after:partition}, continues with what it had and tries again when slots or bounds "
        "change: {error}",
    ),
    "in_place_failed": Reason(
        "failed",
        "Could not be set to {after:partition} in place: {error}",
    ),
    "end_failed": Reason("failed", "Could not be ended: {error}"),
    "canceling": Reason("info", "Is being stopped for {by}."),
    "canceled": Reason("finished", "Was stopped."),
    # Savepoints
    "savepoint": Reason("info", "Takes a savepoint into {target}."),
    "stop_with_savepoint": Reason("info", "Is being stopped with a savepoint into {target}, for {by}."),
    "stopping_again": Reason(
        "info", "Is stopped again with a savepoint into {target}: the order may have been lost."
    ),
    "taking_savepoint": Reason("held", "Has failed, and its savepoint is being taken into {target}."),
    "saving_again": Reason("info", "Is saved again: what became of its savepoint may have been lost."),
    "savepoint_taken": Reason("info", "Its savepoint of micro-batch {batch} is complete: {path}"),
    "savepoint_failed": Reason("failed", "No savepoint was taken: {error}"),
    "savepoint_refused": Reason("failed", "Takes no savepoint while it is {state}: ask again when it runs."),
    "savepoint_nowhere": Reason(
        "failed",
        "Takes no savepoint: nobody said where to. Name a folder, or set spark.elastic.savepointDir.",
    ),
    "stopped_with_savepoint": Reason("finished", "Was stopped with the savepoint {path}"),
    # Executors
    "executors_requested": Reason(
        "info",
        "Requests {wanted:executor} in all, {before} are here: so many are needed for the slots "
        "that the queries have declared.",
    ),
    "executors_replaced": Reason(
        "info",
        "Requests {wanted:executor} in all, of which {leaving} are about to go: somebody has "
        "decommissioned them, and others are to be there before they are gone.",
    ),
    "executors_unlimited": Reason(
        "info",
        "Takes back the number of executors that was asked for, {before} are here: a query without an upper "
        "bound uses all there are.",
    ),
    "executors_released": Reason(
        "info",
        "Releases executors {released}: the slots that the queries have declared need {wanted:executor}.",
    ),
    "executors_left_alone": Reason(
        "info",
        "Neither requests nor releases executors: spark.dynamicAllocation.enabled does that already. Set it "
        "to false to leave executors to this plugin.",
        once=True,
    ),
    "executors_may_be_removed": Reason(
        "info",
        "Uses the executors that are there; with spark.dynamicAllocation.enabled Spark adds some for tasks "
        "that wait, and removes idle ones. Set it to false for queries to follow the slots.",
        once=True,
    ),
    "executors_refused": Reason("failed", "The cluster did not do what was asked: {error}"),
    "adopted": Reason(
        "info",
        "Found running with {before:partition}; continues from there.",
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
    **BOUNDS_REASONS,
    **FAILURE_REASONS,
    **POLICY_REASONS,
}

EXPECTED = "{message} A batch should take {after_ms:ms} instead of {before_ms:ms}."
ADVICE = "{message} Only advice (spark.elastic.adviseOnly): nothing was changed."
NO_LIMIT = "without limit"
MORE = "Let executors come"
FEWER = "Lower its lower bound, or let executors come"
SAVED_BEFORE = "The query was being stopped and failed; all that it had committed is in the savepoint {path}"
LIMIT = "until {wait_ms:ms} have passed"
ALTERNATIVE = "{partitions:partition}: {batch_ms:ms} per batch"


def advised(said: str, *, only: bool) -> str:
    """Say of a decision that is `only` advice that nothing comes of it."""
    return fill(ADVICE, message=said) if only else said


def expected(said: str, **values: object) -> str:
    """Say of a rescale that has to wait what it is to gain: what was said before it may have seen less."""
    return fill(EXPECTED, message=said, **values)


def message(code: str, **values: object) -> str:
    """Say the sentence of a reason. Raises KeyError for a code outside the catalogue or a missing value."""
    return fill(REASONS[code].sentence, **values)
