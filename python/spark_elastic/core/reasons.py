"""The catalogue: every reason that a decision can have, and the one sentence that says it.

Logs, history, UI and ``explain`` show these sentences and make up none of their own. Those about batch
stages, bounds, failures and policies stand in `reasons.py` of their own rooms. `sentences.py` says what
a sentence may have in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.bounds.reasons import BOUNDS_REASONS
from spark_elastic.core.failures.reasons import FAILURE_REASONS
from spark_elastic.core.policies.reasons import POLICY_REASONS
from spark_elastic.core.sentences import Reason, fill

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
