"""The part of the catalogue about policies: why a query should have so many slots, and so many executors."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.reasons.reason import Reason

_LOAD = "{rows_per_second} rows/s arrive, and with {before:slot} a micro-batch takes {load_percent} %"
_BEHIND = "{piled_up} rows have piled up, and are to be gone within {within_ms:ms}"

POLICY_REASONS: Mapping[str, Reason] = {
    "autoscale_measuring": Reason(
        "held",
        "Is to have {after:slot} for now: what it needs is not known before its micro-batches have told a "
        "rate.",
    ),
    "rows_not_limited": Reason("failed", "Its micro-batches read all that there is: {error}", once=True),
    "batches_recalled": Reason(
        "info",
        "Knows what {batches} of its micro-batches took under the driver before: that is kept beside its "
        "checkpoint.",
    ),
    "kept_batches_unusable": Reason(
        "failed",
        "What its micro-batches took under the driver before cannot be read, and is measured again: {error}",
    ),
    "batches_not_kept": Reason(
        "failed",
        "What its micro-batches take could not be kept beside its checkpoint, so another driver has to "
        "measure it again: {error}",
    ),
    "autoscale_first_batch": Reason(
        "info",
        "Is to have {after:slot} instead of {before}: its first micro-batch took {batch_ms:ms}, and its "
        "trigger interval is {interval_ms:ms}. How many rows arrive is not known yet.",
    ),
    "autoscale_keeps": Reason(
        "nothing_to_do",
        f"Is to keep {{before:slot}}: {_LOAD} of its time, {{target_percent}} % is the target.",
    ),
    "autoscale_up": Reason(
        "info",
        f"Is to have {{after:slot}} instead of {{before}}: {_LOAD} of its time, {{target_percent}} % is "
        "the target.",
    ),
    "autoscale_up_backlog": Reason(
        "info",
        f"Is to have {{after:slot}} instead of {{before}}: {_BEHIND}; {{rows_per_second}} rows/s arrive.",
    ),
    "autoscale_falls_behind": Reason(
        "info",
        "Is to have {after:slot} instead of {before}: it is at work all the time and falls behind, though "
        "what was measured ({row_us} µs of one slot per row) says that it would not.",
    ),
    "autoscale_down": Reason(
        "info",
        f"Is to have {{after:slot}} instead of {{before}}: {_LOAD} of its time, {{target_percent}} % is "
        "the target.",
    ),
    "autoscale_idle": Reason(
        "info",
        "Is to have {after:slot} instead of {before}: there is nothing to read.",
    ),
    "autoscale_settling": Reason(
        "held",
        "Is to keep {before:slot} until micro-batches have run with what it has now.",
    ),
    "autoscale_down_waits": Reason(
        "held",
        "Is to keep {before:slot}, though {fewer} would do: so many were needed within the last "
        "{window_ms:ms}, or it is not known for so long.",
    ),
    "autoscale_no_whole_executor": Reason(
        "held",
        "Is to keep {before:slot}, though {fewer} would do: that frees no whole executor of "
        "{executor_slots:slot}.",
    ),
    "autoscale_down_dear": Reason(
        "held",
        "Is to keep {before:slot}, though {fewer} would do: moving its state takes {pause_ms:ms}, more than "
        "the slots are worth.",
    ),
    "autoscale_draining": Reason(
        "held",
        f"Is to keep {{before:slot}}: {_BEHIND}.",
    ),
    # What more executors cannot help
    "autoscale_fixed_part": Reason(
        "held",
        "Is to have {after:slot}, and more would not help: {fixed_ms:ms} of each micro-batch are planning, "
        "offsets, commit and the sink, which no executor shortens. A longer trigger interval would.",
    ),
    "autoscale_admission": Reason(
        "held",
        "Is to have {after:slot}, and more would not help: {rows_per_second} rows/s arrive, and its source "
        "is read with a limit that lets in fewer for each trigger interval. Raise that limit "
        "(maxOffsetsPerTrigger, maxFilesPerTrigger, …) or shorten the interval.",
    ),
    "autoscale_hot_partition": Reason(
        "held",
        "Is to have {after:slot}, and more would not help: {hot_percent} % of the rows that wait to be read "
        "are in {hot_partition} of a source, which one task reads. Spread its keys, or add partitions.",
    ),
    "autoscale_memory": Reason(
        "held",
        "Is to have {after:slot}, and more would not help: memory is missing, not cores. Its tasks lose "
        "{lost_percent} % of their time, {gc_percent} % to garbage collection, and spill "
        "{spilled_bytes:bytes} to disk in a micro-batch. Give executors more memory "
        "(spark.executor.memory), or fewer cores to share it.",
    ),
    "autoscale_skew": Reason(
        "held",
        "Is to have {after:slot}, and more would not help: one task takes {longest_ms:ms} of each "
        "micro-batch, half of the tasks take {median_ms:ms} or less. One key or partition has so much of "
        "the rows: spread that key.",
    ),
    "autoscale_source_tasks": Reason(
        "held",
        "Is to have {after:slot}, and more would not help: its sources are read with {tasks:task}. More "
        "partitions of the source would.",
    ),
    "autoscale_fixed_count": Reason(
        "held",
        "Is to have {after:slot}, and more would not help: it has {partitions:partition}, which cannot be "
        "changed while it runs.",
    ),
    "autoscale_backpressure": Reason(
        "info",
        "Reads at most {most_rows} rows with one micro-batch while {behind} wait: about as many as "
        "{before:slot} process in its trigger interval, so that it can soon use more of them.",
    ),
    "autoscale_made_worse": Reason(
        "info",
        "Is to have {after:slot}: with {more} a micro-batch of as many rows took {after_ms:ms}, with {after} "
        "it took {before_ms:ms}.",
    ),
    # Custom policies
    "policy_says": Reason("info", "Is to have {after:slot}, says {policy}: {says}"),
    "policy_says_batch": Reason(
        "info",
        "Batch stages are to have {after:executor} beside those of the queries, says {policy}: {says}",
    ),
    "policy_awaited": Reason("held", "Is to have {after:slot} until the policy {policy} has answered."),
    "policy_failed": Reason(
        "failed",
        "The policy {policy} has no answer that can be used: {error}. What it wanted last stays in force; it "
        "is asked again in {again_ms:ms}, and later and later.",
    ),
    "policy_recovered": Reason(
        "info",
        "The policy {policy} answers again, after {failures:question} without an answer in {silent_ms:ms}.",
    ),
    # Partitions of a query whose slots follow its load
    "start_with_reserve": Reason(
        "start",
        "Starts with {after:partition} on {slots:slot}: its slots are to follow its load, and more "
        "partitions than slots let them do so without a move of its state.",
    ),
    "reserve_left": Reason(
        "nothing_to_do",
        "Keeps {before:partition}: that lets {slots:slot} be in use.",
    ),
    "moved_lately": Reason(
        "nothing_to_do",
        "Keeps {before:partition} on {slots:slot}, though {after} would suit them: its state was moved "
        "within the last {horizon_ms:ms}, and its micro-batches fit into their interval.",
    ),
    "reserve_used_up": Reason(
        "rescale_state",
        "Goes from {before:partition} to {after:partition}: with {before} some of {slots:slot} would stand "
        "empty, the rescale costs {cost_ms:ms}.",
    ),
    "reserve_dear": Reason(
        "rescale_state",
        "Goes from {before:partition} to {after:partition} on {slots:slot}: what each partition costs "
        "without any data would take too much of their time, the rescale costs {cost_ms:ms}.",
    ),
    # What stands behind every policy
    "wish_above_bounds": Reason("held", "Its bounds allow {after}."),
    "wish_below_bounds": Reason("held", "Its lower bound is {after}."),
    "wish_above_limit": Reason("held", "No more than {after} are allowed by {by}."),
    "wish_below_limit": Reason("held", "At least {after} are called for by {by}."),
    "slots_limited": Reason("info", "Limits for its slots: {limits}."),
    "slots_not_limited": Reason("info", "Only its declared bounds limit its slots again."),
    "executors_at_least": Reason(
        "info",
        "Requests {wanted:executor} in all, {before} are here: so many at least are called for by {by}.",
    ),
    "executors_wanted": Reason(
        "info",
        "Requests {wanted:executor} in all, {before} are here: so many are needed for the slots "
        "that the queries should have.",
    ),
    "executors_for_batch": Reason(
        "info",
        "Requests {wanted:executor} in all, {before} are here: for the slots that the queries "
        "should have, and {batch} more for batch stages.",
    ),
    "executors_not_wanted": Reason(
        "info",
        "Releases executors {released}: the slots that the queries should have, and batch stages, need "
        "{wanted:executor}.",
    ),
    # Batch stages
    "batch_first": Reason(
        "info",
        "Batch stages are to have {after:executor}: {left:task} are left, and no executor is here.",
    ),
    "batch_up": Reason(
        "info",
        "Batch stages are to have {after:executor} beside those of the queries instead of {before}: "
        "{left:task} are left, {work_ms:ms} of one slot with what may follow, and even the last of these "
        "executors saves {saved_ms:ms}; it takes {ready_ms:ms} to come.",
    ),
    "batch_keeps": Reason(
        "nothing_to_do",
        "Batch stages are to have {after:executor} beside those of the queries, and no more: {left:task} are "
        "left, {work_ms:ms} of one slot with what may follow, and one more executor would save "
        "{saved_ms:ms}; it takes {ready_ms:ms} to come.",
    ),
    "batch_down": Reason(
        "info",
        "Batch stages are to have {after:executor} beside those of the queries instead of {before}: "
        "{left:task} are left, {work_ms:ms} of one slot with what may follow.",
    ),
    "batch_held": Reason(
        "held",
        "Batch stages are to have {after:executor} beside those of the queries: no task is left, but another "
        "stage may follow at once.",
    ),
    "batch_over": Reason(
        "info",
        "Batch stages are to have no executor of their own, instead of {before}: no task is left.",
    ),
    "executors_limited": Reason(
        "held",
        "{wanted:executor} are wanted, and {setting} allows {after}.",
    ),
}
