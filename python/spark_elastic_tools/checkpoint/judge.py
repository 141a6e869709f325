"""Say whether the state in a checkpoint can be changed as requested, and if not, why."""

from __future__ import annotations

from attrs import frozen

from spark_elastic_tools.checkpoint.facts import HDFS, ROCKSDB, Checkpoint, store_title
from spark_elastic_tools.checkpoint.logs import ENCODING, GROUPS_FORMAT, JOIN_FORMAT

_GROUPS = ("flatMapGroupsWithState", "applyInPandasWithState")
_WITH_STATE = (
    "transformWithStateExec",
    "transformWithStateInPandasExec",
    "transformWithStateInPySparkExec",
)
_JOIN = "symmetricHashJoin"
_KNOWN = (
    *("stateStoreSave", "dedupe", "dedupeWithinWatermark", "sessionWindowStateStoreSaveExec", _JOIN),
    *(*_GROUPS, *_WITH_STATE),
)
# From this format of a join's state on, its stores have column families.
_JOIN_IN_FAMILIES = 3


@frozen
class Target:
    """How state should be kept; the provider is "hdfs" or "rocksdb", the format 1 or 2."""

    partitions: int
    provider: str
    format: int

    def __str__(self) -> str:
        return f"{partitions(self.partitions)} in {store_title(self.provider, self.format)}"


def partitions(count: int) -> str:
    """Return "1 partition" or "2 partitions"."""
    return f"{count} partition{'' if count == 1 else 's'}"


def unreadable(checkpoint: Checkpoint) -> str | None:
    """Return why the rows of its state cannot be read, None if they can."""
    if checkpoint.committed is None:
        return "it has no committed batch: run the query until it has committed one"
    if not checkpoint.operators:
        return "its query has no state, so there is nothing to change"
    if checkpoint.provider is None:
        return (
            f"its state is kept by {checkpoint.provider_class}, and only that of Spark's own providers "
            "(HDFS-backed files, RocksDB) can be changed"
        )
    # Spark before 4.0 records no names, and the shim infers what it needs from stores and keys.
    names = [operator.name for operator in checkpoint.operators if operator.name is not None]
    unknown = next((name for name in names if name not in _KNOWN), None)
    return None if unknown is None else f"Spark has no reader for the whole state of its operator {unknown}"


def unchangeable(checkpoint: Checkpoint) -> str | None:
    """Return why no change of its state is possible now, None if one is.

    An interrupted change is no reason: it is completed or undone before the next one.
    """
    if checkpoint.started is not None and checkpoint.committed is not None and not checkpoint.is_interrupted:
        return (
            f"batch {checkpoint.started} is started and not committed, and its sink may have a part of it: "
            "run the query until it has committed that batch"
        )
    return unreadable(checkpoint)


def refusal(checkpoint: Checkpoint, target: Target) -> str | None:
    """Return why its state cannot be changed to `target`, None if it can."""
    reason = unchangeable(checkpoint)
    if reason is not None:
        return reason
    if target == Target(checkpoint.partitions, str(checkpoint.provider), checkpoint.format):
        return f"its state is already in {target}: name another number or another store"
    if target.provider == HDFS:
        if target.format != 1:
            return "HDFS-backed files have format 1 only: leave --format out"
        reason = _needs_rocksdb(checkpoint)
    elif checkpoint.provider == HDFS:
        reason = _needs_hdfs(checkpoint)
    if reason is not None:
        return reason
    return _without_keys(checkpoint, target)


def _without_keys(checkpoint: Checkpoint, target: Target) -> str | None:
    # Only one partition of such state has files, and a rewrite needs those of all.
    keyless = next((operator for operator in checkpoint.operators if operator.keyed is False), None)
    if keyless is None or checkpoint.partitions == target.partitions == 1:
        return None
    return (
        f"its operator {keyless.id} has no keys, as in groupBy().count() or limit, so its "
        "state is in one partition, whatever their number: leave the checkpoint as it is"
    )


def _needs_rocksdb(checkpoint: Checkpoint) -> str | None:
    names = {operator.name for operator in checkpoint.operators}
    if names.intersection(_WITH_STATE):
        return "transformWithState keeps its state only in RocksDB: leave it there"
    if _JOIN in names and int(checkpoint.conf.get(JOIN_FORMAT, "1")) >= _JOIN_IN_FAMILIES:
        return f"its join has {JOIN_FORMAT}={checkpoint.conf[JOIN_FORMAT]}, which only RocksDB can keep"
    encoding = checkpoint.conf.get(ENCODING, "unsaferow")
    if encoding != "unsaferow":
        return f"its state has {ENCODING}={encoding}, which only RocksDB can keep"
    return None


def _needs_hdfs(checkpoint: Checkpoint) -> str | None:
    names = {operator.name for operator in checkpoint.operators}
    if names.intersection(_GROUPS) and checkpoint.conf.get(GROUPS_FORMAT, "1") == "1":
        return (
            f"its flatMapGroupsWithState has {GROUPS_FORMAT}=1, whose timeouts RocksDB refuses: leave it in "
            "HDFS-backed files"
        )
    return None


def target_of(
    checkpoint: Checkpoint, to: str | None = None, count: int | None = None, form: int | None = None
) -> Target:
    """Return what a command asks for: `to`, else the present provider; `count`, else the present number.

    Format None is the present one for the present provider, else the newest of the new provider.
    """
    provider = to or checkpoint.provider or ROCKSDB
    if form is None:
        form = checkpoint.format if to is None else 1 if provider == HDFS else 2
    return Target(count or checkpoint.partitions, provider, form)
