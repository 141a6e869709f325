"""Say whether the state in a checkpoint can be changed as requested, and if not, why."""

from __future__ import annotations

from attrs import frozen

from spark_elastic_tools.checkpoint.facts import HDFS, ROCKSDB, Checkpoint, Original, store_title
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

    @property
    def state_format(self) -> str:
        """The name of its store and format, as savepoints have it."""
        return self.provider if self.provider == "hdfs" else f"{self.provider}-{self.format}"

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
    reason = unreadable(checkpoint)
    if reason is not None or checkpoint.is_interrupted:
        return reason
    last, newest = checkpoint.committed, checkpoint.newest
    if last is not None and newest is not None and newest > last + 1:
        return (
            f"batches {last + 1} to {newest} are started and not committed: run the query until it has "
            "committed them"
        )
    return None


def _needs_commit(checkpoint: Checkpoint, target: Target) -> str | None:
    """Return why a target has to wait for the batch that has begun, whose number its sink may know."""
    if not checkpoint.has_begun or checkpoint.is_interrupted or target.format != 1:
        return None
    return (
        f"batch {checkpoint.started} is started and not committed, so its state can only get RocksDB with "
        "format 2: run the query until it has committed that batch"
    )


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
    return reason or _needs_commit(checkpoint, target) or _without_keys(checkpoint, target)


def irreversible(checkpoint: Checkpoint, original: Original) -> str | None:
    """Return why the state that was kept may be there no more, None if it is there."""
    # A store deletes its own old files alone; those of format 2 are out of its sight if it has format 1 now.
    is_alike = original.provider_class == checkpoint.provider_class and original.format <= checkpoint.format
    if is_alike and not original.is_logged:
        return (
            f"Spark may have deleted the state of batch {original.batch}, which is not in its log any more: "
            "change the state again instead"
        )
    return None


def again(checkpoint: Checkpoint, original: Original) -> int:
    """Return how many batches that the query has started since its state was changed would run again."""
    newest = checkpoint.newest or 0
    if original.has_begun and checkpoint.committed == original.batch:
        return 0
    return max(newest - original.batch - (0 if original.has_begun else 1), 0)


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
