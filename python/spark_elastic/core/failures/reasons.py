"""What is said of a query that fails."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.sentences import Reason

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
