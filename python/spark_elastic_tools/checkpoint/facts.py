"""Read what a checkpoint says about itself, from whatever holds its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from attrs import evolve, field, frozen

from spark_elastic_tools.checkpoint.logs import (
    PROVIDER,
    SHUFFLE_PARTITIONS,
    FormatError,
    Offsets,
    Operator,
    has_key,
    parse_commit,
    parse_offsets,
    parse_operator,
    written_by,
)

HDFS, ROCKSDB = "hdfs", "rocksdb"
_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
PROVIDERS = {
    f"{_PACKAGE}.HDFSBackedStateStoreProvider": HDFS,
    f"{_PACKAGE}.RocksDBStateStoreProvider": ROCKSDB,
}
_TITLES = {HDFS: "HDFS-backed files", ROCKSDB: "RocksDB"}
_DEFAULT_PROVIDER = f"{_PACKAGE}.HDFSBackedStateStoreProvider"
_DEFAULT_PARTITIONS = "200"
DEFAULT_STORE = "default"
# Where the shim writes the state before it takes the place of the old one (CheckpointRewrite.scala).
_WORK = ".spark-elastic-rewrite"
# Where it keeps the entries of the logs before that, and a note about the state.
_ORIGINAL = ".spark-elastic-original"
_NOTE = f"{_ORIGINAL}/note"
# What it writes first when it goes back to that, or deletes it.
_UNDO = f"{_ORIGINAL}/undo"
_DELETED = (f"{_ORIGINAL}/forget", f"{_ORIGINAL}/over")


class NoCheckpointError(Exception):
    """The path has no checkpoint that can be read; the message says what was found and what to type."""


class Files(Protocol):
    """The files below the folder of a checkpoint; paths are relative to it, with / between names."""

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder; none if it does not exist."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None if it does not exist."""

    def changed_ms(self, path: str) -> int:
        """Return when a file was written, in ms since 1970."""


@frozen(kw_only=True)
class Original:
    """What is kept of a checkpoint as it was before its state was changed, as of the batch `batch`.

    `has_begun` says that its next batch had begun, so that the change has no number of its own. `is_logged`
    says that the log of commits still has that batch.
    """

    batch: int
    partitions: int
    provider_class: str
    format: int
    has_begun: bool
    is_logged: bool

    @property
    def change(self) -> int:
        """The batch that the change is, or that had begun."""
        return self.batch + 1

    @property
    def store(self) -> str:
        """How the state was kept, such as "RocksDB, format 2"."""
        return _store_of(self.provider_class, self.format)


@frozen(kw_only=True)
class Checkpoint:
    """The checkpoint of a query, as of its last committed batch.

    `started` is a batch that was started after it and is not committed. If `is_rewrite`, that is no batch of
    the query, but a change of its state. `has_work` says that a change which was cut short has left files,
    and `is_being_undone` that it is one back to what was kept. `changed_ms` is the time of the newest entry
    in its logs, by the clock of their storage. `original` is what is kept from before the newest change.
    """

    path: str
    committed: int | None
    started: int | None
    is_rewrite: bool
    has_work: bool
    is_being_undone: bool
    partitions: int
    provider_class: str
    format: int
    operators: tuple[Operator, ...]
    conf: Mapping[str, str] = field(repr=False)
    changed_ms: int
    original: Original | None = None

    @property
    def provider(self) -> str | None:
        """The kind of its state stores, None for another one than Spark's two."""
        return PROVIDERS.get(self.provider_class)

    @property
    def is_interrupted(self) -> bool:
        """Whether a change of its state was cut short, which has to be completed or undone."""
        return self.is_rewrite or self.has_work

    @property
    def has_begun(self) -> bool:
        """Whether its query has started a batch that is not committed."""
        return self.started is not None and self.committed is not None and not self.is_rewrite

    @property
    def newest(self) -> int | None:
        """The newest batch, committed or not."""
        return self.committed if self.started is None else self.started

    @property
    def written_by(self) -> str:
        """The versions of Spark that can have written it, such as "Spark 4.0 or 4.1"."""
        return written_by(self.conf)

    @property
    def store(self) -> str:
        """How its state is kept, such as "RocksDB, format 2"."""
        return _store_of(self.provider_class, self.format)

    @property
    def stores(self) -> tuple[tuple[int, str], ...]:
        """The number of the operator and the name of each store."""
        return tuple((operator.id, name) for operator in self.operators for name in operator.stores)


def store_title(provider: str, format_version: int) -> str:
    """Describe how state is kept, such as "RocksDB, format 2"."""
    return f"{_TITLES.get(provider, provider)}, format {format_version}"


def _store_of(provider_class: str, format_version: int) -> str:
    return store_title(PROVIDERS.get(provider_class) or provider_class.rpartition(".")[2], format_version)


def read_checkpoint(files: Files, path: str) -> Checkpoint:
    """Read a checkpoint's metadata; `path` is how to name it. Raises NoCheckpointError."""
    started, committed = _batches(files, "offsets"), _batches(files, "commits")
    if not started:
        raise NoCheckpointError(
            f"{path} is no checkpoint: its folder offsets has no entry; name the folder that the query has "
            "as its checkpointLocation"
        )
    try:
        return _read(files, path, started, committed)
    except FormatError as error:
        raise NoCheckpointError(f"{path} is no checkpoint that Spark has written: it has {error}") from error


def _read(files: Files, path: str, started: Sequence[int], committed: Sequence[int]) -> Checkpoint:
    last = committed[-1] if committed else None
    newest = _offsets(files, started[-1])
    current = newest if last is None or last == started[-1] else _offsets(files, last)
    open_batch = started[-1] if last is None or started[-1] > last else None
    entries = [f"offsets/{started[-1]}", *([f"commits/{last}"] if last is not None else [])]
    commit = files.read(f"commits/{last}") if last is not None else None
    is_being_undone = files.read(_UNDO) is not None
    is_being_deleted = any(files.read(mark) is not None for mark in _DELETED)
    return Checkpoint(
        path=path,
        committed=last,
        started=open_batch,
        is_rewrite=open_batch is not None and last is not None and _is_rewrite(current, newest),
        has_work=bool(files.names(_WORK)) or is_being_undone or is_being_deleted,
        is_being_undone=is_being_undone,
        partitions=int(current.conf.get(SHUFFLE_PARTITIONS, _DEFAULT_PARTITIONS)),
        provider_class=current.conf.get(PROVIDER, _DEFAULT_PROVIDER),
        format=parse_commit(commit) if commit is not None else 1,
        operators=tuple(_operator(files, number) for number in _numbers(files.names("state"))),
        conf=current.conf,
        changed_ms=max(files.changed_ms(entry) for entry in entries),
        original=None if is_being_deleted else _original(files, committed),
    )


def _original(files: Files, committed: Sequence[int]) -> Original | None:
    # Like the shim, take a note that is not whole for none.
    match (files.read(_NOTE) or b"").decode("utf-8", errors="replace").split("\n"):
        case [_, last, provider_class, form] if last.isdecimal() and form.isdecimal():
            batch = int(last)
        case _:
            return None
    entry = files.read(f"{_ORIGINAL}/offsets/{batch}")
    conf = parse_offsets(entry).conf if entry is not None else {}
    return Original(
        batch=batch,
        partitions=int(conf.get(SHUFFLE_PARTITIONS, _DEFAULT_PARTITIONS)),
        provider_class=provider_class,
        format=int(form),
        has_begun=batch + 1 in _batches(files, f"{_ORIGINAL}/offsets"),
        is_logged=batch in committed,
    )


def _is_rewrite(before: Offsets, after: Offsets) -> bool:
    """Return whether an entry only gives the state another form: all else is as before, its time too."""
    form = (SHUFFLE_PARTITIONS, PROVIDER)
    others = [{key: one.conf[key] for key in one.conf if key not in form} for one in (before, after)]
    return others[0] == others[1] and evolve(before, conf={}) == evolve(after, conf={})


def _offsets(files: Files, batch: int) -> Offsets:
    data = files.read(f"offsets/{batch}")
    if data is None:
        raise FormatError(f"no offsets of its last committed batch {batch}")
    return parse_offsets(data)


def _operator(files: Files, number: int) -> Operator:
    folder = f"state/{number}"
    versions = _numbers(files.names(f"{folder}/_metadata/v2"))
    recorded = f"v2/{versions[-1]}" if versions else "metadata"
    data = files.read(f"{folder}/_metadata/{recorded}")
    if data is not None:
        operator = evolve(parse_operator(data), id=number)
    else:
        # Spark before 4.0 records nothing, but only joins have stores with names.
        names = files.names(f"{folder}/0")
        joined = sorted(name for name in names if name.startswith(("left-", "right-")))
        operator = Operator(number, None, tuple(joined) or (DEFAULT_STORE,))
    # What has several stores, or schemas of more than one kind of state, works by key.
    is_keyed = bool(versions) or operator.stores != (DEFAULT_STORE,) or _has_key(files, folder)
    return evolve(operator, keyed=is_keyed)


def _has_key(files: Files, folder: str) -> bool | None:
    schema = files.read(f"{folder}/0/_metadata/schema")
    return has_key(schema) if schema is not None else None


def _batches(files: Files, folder: str) -> list[int]:
    return _numbers(files.names(folder))


def _numbers(names: Sequence[str]) -> list[int]:
    return sorted(int(name) for name in names if name.isdecimal())
