"""Tell failures that only the state store of our choice has.

RocksDB lets a task open a store once. Spark's own store lets it do that again, as a `foreachBatch` makes
happen that reads rows twice in one task. Checkpoint format 2 wants all partitions of a micro-batch to run,
and a `foreachBatch` may read only some of its rows.
"""

from __future__ import annotations

import re

from spark_elastic.core.events import Failure

_OPENED_TWICE = "CANNOT_LOAD_STATE_STORE.UNRELEASED_THREAD_ERROR"
_SAID = re.compile(rf"\[{re.escape(_OPENED_TWICE)}\]|\bCheckpointInfo length: \d+, numPartitions: \d+")


def is_of_our_store(failure: Failure) -> bool:
    """Say whether a query with Spark's own store and format would not have failed so."""
    return failure.error_class == _OPENED_TWICE or _SAID.search(failure.error) is not None
