"""Reasons of policies: why a query should have its slots, and the application its executors."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.reasons.reason import Reason

_LOAD = "load {load_percent} % (target {target_percent} %), {rows_per_second} rows/s arrive"
_BACKLOG = "backlog of {piled_up} rows, to be cleared within {within_ms:ms}"

POLICY_REASONS: Mapping[str, Reason] = {
    "autoscale_measuring": Reason(
        "held",
        "Use {after:slot} until micro-batches have shown a rate.",
    ),
    "rows_not_limited": Reason(
        "failed", "Could not limit micro-batches, they read all that is available: {error}", once=True
    ),
    "batches_recalled": Reason(
        "info",
        "Restored measurements of {batches} micro-batches by the previous driver, stored with the "
        "checkpoint.",
    ),
    "kept_batches_unusable": Reason(
        "failed",
        "Measurements of the previous driver cannot be read, measuring again: {error}",
    ),
    "batches_not_kept": Reason(
        "failed",
        "Could not store measurements with the checkpoint, a new driver measures again: {error}",
    ),
    "autoscale_first_batch": Reason(
        "info",
        "Scale {before} → {after:slot}: the first micro-batch took {batch_ms:ms}, the trigger "
        "interval is {interval_ms:ms}; the arrival rate is not known yet.",
    ),
    "autoscale_keeps": Reason(
        "nothing_to_do",
        f"Keep {{before:slot}}: {_LOAD}.",
    ),
    "autoscale_up": Reason(
        "info",
        f"Scale {{before}} → {{after:slot}}: {_LOAD}.",
    ),
    "autoscale_up_backlog": Reason(
        "info",
        f"Scale {{before}} → {{after:slot}}: {_BACKLOG}; {{rows_per_second}} rows/s arrive.",
    ),
    "autoscale_falls_behind": Reason(
        "info",
        "Scale {before} → {after:slot}: always busy and falling behind, though the measured {row_us} "
        "µs of slot time per row say otherwise.",
    ),
    "autoscale_down": Reason(
        "info",
        f"Scale {{before}} → {{after:slot}}, enough for the last {{window_ms:ms}}: {_LOAD}.",
    ),
    "autoscale_idle": Reason(
        "info",
        "Scale {before} → {after:slot}: nothing to read.",
    ),
    "autoscale_settling": Reason(
        "held",
        "Keep {before:slot} until micro-batches have run on them.",
    ),
    "autoscale_down_waits": Reason(
        "held",
        "Keep {before:slot}, {fewer} would do now: more were needed within the last {window_ms:ms}, "
        "or less is known.",
    ),
    "autoscale_no_whole_executor": Reason(
        "held",
        "Keep {before:slot}, {fewer} would do: that frees no whole executor of {executor_slots:slot}.",
    ),
    "autoscale_down_dear": Reason(
        "held",
        "Keep {before:slot}, {fewer} would do: moving state takes {pause_ms:ms}, more than the slots save.",
    ),
    "autoscale_draining": Reason(
        "held",
        f"Keep {{before:slot}}: {_BACKLOG}.",
    ),
    # What more executors cannot help
    "autoscale_fixed_part": Reason(
        "held",
        "Use {after:slot}: planning, offsets, commit and sink take {fixed_ms:ms} of each micro-batch, "
        "which more slots do not shorten. A longer trigger interval would help.",
    ),
    "autoscale_admission": Reason(
        "held",
        "Use {after:slot}: more would wait for rows, since the source's limit admits fewer than the "
        "{rows_per_second} rows/s that arrive. Raise it (maxOffsetsPerTrigger, maxFilesPerTrigger, …) "
        "or shorten the trigger interval.",
    ),
    "autoscale_hot_partition": Reason(
        "held",
        "Use {after:slot}: {hot_percent} % of the waiting rows are in {hot_partition} of a source, which "
        "one task reads with any number of slots. Spread its keys, or add partitions.",
    ),
    "autoscale_memory": Reason(
        "held",
        "Use {after:slot}: tasks lack memory, not cores, and more executors add no memory per task. "
        "Tasks lose {lost_percent} % of their time, {gc_percent} % to garbage collection, and spill "
        "{spilled_bytes:bytes} per micro-batch. Raise spark.executor.memory, or lower "
        "spark.executor.cores.",
    ),
    "autoscale_skew": Reason(
        "held",
        "Use {after:slot}: one task takes {longest_ms:ms} of each micro-batch, which more slots do not "
        "shorten; half of the tasks take {median_ms:ms} or less. Spread the key or partition with most "
        "rows.",
    ),
    "autoscale_source_tasks": Reason(
        "held",
        "Use {after:slot}: its sources are read in {tasks:task}, so more slots would stay idle. Add "
        "partitions to the sources.",
    ),
    "autoscale_fixed_count": Reason(
        "held",
        "Use {after:slot}: its {partitions:partition} cannot change while it runs, so more slots would "
        "stay idle.",
    ),
    "autoscale_backpressure": Reason(
        "info",
        "Read at most {most_rows} rows per micro-batch, {behind} are waiting: about what "
        "{before:slot} process per trigger interval, so that more slots can soon be used.",
    ),
    "autoscale_made_worse": Reason(
        "info",
        "Use {after:slot}: as many rows took {after_ms:ms} with {more}, {before_ms:ms} with {after}.",
    ),
    # Custom policies
    "policy_says": Reason("info", "Use {after:slot}, decided by {policy}: {says}"),
    "policy_says_batch": Reason(
        "info",
        "Use {after:executor} for batch stages, decided by {policy}: {says}",
    ),
    "policy_awaited": Reason("held", "Use {after:slot} until policy {policy} answers."),
    "policy_failed": Reason(
        "failed",
        "Policy {policy} gave no usable answer: {error}. Its last decision stays in force; next "
        "question in {again_ms:ms}, later ones after longer pauses.",
    ),
    "policy_recovered": Reason(
        "info",
        "Policy {policy} answers again, after {failures:question} without an answer in {silent_ms:ms}.",
    ),
    # Partitions of a query whose slots follow its load
    "start_with_reserve": Reason(
        "start",
        "Start with {after:partition} on {slots:slot}: spare partitions let slots follow the load "
        "without moving state.",
    ),
    "reserve_left": Reason(
        "nothing_to_do",
        "Keep {before:partition}: enough to use {slots:slot}.",
    ),
    "moved_lately": Reason(
        "nothing_to_do",
        "Keep {before:partition} on {slots:slot}, {after} would fit: state was moved within the last "
        "{horizon_ms:ms}, and micro-batches fit their interval.",
    ),
    "reserve_used_up": Reason(
        "rescale_state",
        "Scale {before} → {after:partition}: {before} leave some of {slots:slot} empty, the rescale "
        "costs {cost_ms:ms}.",
    ),
    "reserve_dear": Reason(
        "rescale_state",
        "Scale {before} → {after:partition} on {slots:slot}: too much time goes into the fixed cost "
        "of each partition, the rescale costs {cost_ms:ms}.",
    ),
    # What stands behind every policy
    "wish_above_bounds": Reason("held", "Bounds allow {after}."),
    "wish_below_bounds": Reason("held", "Lower bound is {after}."),
    "wish_above_limit": Reason("held", "Limited to {after} by {by}."),
    "wish_below_limit": Reason("held", "Raised to {after} by {by}."),
    "slots_limited": Reason("info", "Slot limits: {limits}."),
    "slots_not_limited": Reason("info", "Slot limits lifted, only declared bounds apply."),
    "executors_at_least": Reason(
        "info",
        "Request {before} → {wanted:executor}: required by {by}.",
    ),
    "executors_wanted": Reason(
        "info",
        "Request {before} → {wanted:executor}: queries need them.",
    ),
    "executors_for_batch": Reason(
        "info",
        "Request {before} → {wanted:executor}: queries need them, {batch} of them for batch stages.",
    ),
    "executors_not_wanted": Reason(
        "info",
        "Release executors {released}: queries and batch stages need {wanted:executor}.",
    ),
    # Batch stages
    "batch_first": Reason(
        "info",
        "Use {after:executor} for batch stages: {left:task} left, no executor running.",
    ),
    "batch_up": Reason(
        "info",
        "Scale batch stages {before} → {after:executor}: {left:task} left, {work_ms:ms} of slot time; "
        "the last one saves {saved_ms:ms} and takes {ready_ms:ms} to start.",
    ),
    "batch_keeps": Reason(
        "nothing_to_do",
        "Keep {after:executor} for batch stages: {left:task} left, {work_ms:ms} of slot time; one "
        "more would save {saved_ms:ms} and take {ready_ms:ms} to start.",
    ),
    "batch_down": Reason(
        "info",
        "Scale batch stages {before} → {after:executor}: {left:task} left, {work_ms:ms} of slot time.",
    ),
    "batch_held": Reason(
        "held",
        "Keep {after:executor} for batch stages: no task left, but another stage may follow.",
    ),
    "batch_over": Reason(
        "info",
        "Scale batch stages {before} → 0 executors: no task left.",
    ),
    "executors_limited": Reason(
        "held",
        "{wanted:executor} wanted, {setting} allows {after}.",
    ),
}
