"""What is said of failures that only the state store of our choice has."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.sentences import Reason

STORE_REASONS: Mapping[str, Reason] = {
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
