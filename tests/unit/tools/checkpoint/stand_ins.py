"""A checkpoint in memory, and stand-ins for the Spark and the shim that work on it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import define, field

from spark_elastic_tools.checkpoint.contents import Checksum, Contents, Part
from spark_elastic_tools.checkpoint.facts import PROVIDERS
from spark_elastic_tools.checkpoint.judge import Target
from spark_elastic_tools.checkpoint.logs import PROVIDER, SHUFFLE_PARTITIONS
from spark_elastic_tools.checkpoint.session import JavaError

CLASSES = {kind: name for name, kind in PROVIDERS.items()}
SPARK_4_2 = {"spark.sql.streaming.stateStore.rowChecksum.enabled": "false"}
WHERE = "file:/checkpoint"


def schema(*types: str) -> bytes:
    """Make a file with schemas as Spark writes it, with these types in the key."""
    key = {"type": "struct", "fields": [{"name": f"k{i}", "type": of} for i, of in enumerate(types)]}
    text = json.dumps(key).encode()
    chunk = struct.pack(">iH", 1, len(text)) + text
    return struct.pack(">H", 2) + b"v2" + chunk + chunk


def offsets(
    conf: Mapping[str, str], at_ms: int = 1_000, sources: Sequence[str] = ('{"logOffset":1}',)
) -> bytes:
    metadata = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": at_ms, "conf": dict(conf)})
    return "\n".join(("v1", metadata, *sources)).encode()


def commit(form: int) -> bytes:
    ids = {"stateUniqueIds": {"0": [["a"], ["b"]]}} if form == 2 else {}
    return f"v{form}\n{json.dumps({'nextBatchWatermarkMs': 0, **ids})}".encode()


def operator(number: int, name: str, *stores: str) -> bytes:
    of = [{"storeName": store, "numColsPrefixKey": 0, "numPartitions": 5} for store in stores]
    return ("v1\n" + json.dumps({"operatorInfo": {"operatorId": number, "operatorName": name},
                                 "stateStoreInfo": of})).encode()  # fmt: skip


@define
class MemoryFiles:
    """The files of a checkpoint, by their paths; `changed` (ms) is when all of them were written."""

    files: dict[str, bytes] = field(factory=dict)
    root: str = WHERE
    changed: int = 0

    def names(self, folder: str) -> Sequence[str]:
        begin = f"{folder}/"
        return sorted({path[len(begin) :].split("/")[0] for path in self.files if path.startswith(begin)})

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def changed_ms(self, path: str) -> int:
        return self.changed

    def delete(self, path: str) -> None:
        del self.files[path]


def files(
    partitions: int = 5,
    provider: str = "hdfs",
    form: int = 1,
    batches: int = 2,
    operators: Mapping[str, Sequence[str]] | None = None,
    conf: Mapping[str, str] = SPARK_4_2,
    key: Sequence[str] = ("integer",),
) -> MemoryFiles:
    """Make a checkpoint with this many committed batches; `operators` are their names with their stores."""
    settings = {**conf, SHUFFLE_PARTITIONS: str(partitions), PROVIDER: CLASSES.get(provider, provider)}
    made = {"metadata": b"{}"}
    for batch in range(batches):
        made[f"offsets/{batch}"] = offsets(settings, 1_000 + batch, (str(batch),))
        made[f"commits/{batch}"] = commit(form)
    for number, (name, stores) in enumerate((operators or {"stateStoreSave": ["default"]}).items()):
        made[f"state/{number}/_metadata/metadata"] = operator(number, name, *stores)
        made[f"state/{number}/0/_metadata/schema"] = schema(*key)
    return MemoryFiles(made)


class StandIn:
    """What the shim does, on files in memory; the state has one row a partition and store.

    `lossy` loses a row in each rewrite; `broken` is the message of an exception that the rewrite throws.
    """

    def __init__(self, files: MemoryFiles, *, lossy: bool = False, broken: str = "") -> None:
        self._files = files
        self._lossy = lossy
        self._broken = broken
        self.rows = 10
        self.calls: list[str] = []

    def measure(self, operator: int, store: str, partitions: int) -> Contents:
        parts = [Part(self.rows // partitions, 100)] * partitions
        return Contents(operator, store, tuple(parts), Checksum(self.rows, self.rows * 7, self.rows))

    def rewrite(self, target: Target) -> int:
        self.calls.append(f"rewrite {target}")
        if self._broken:
            raise JavaError(self._broken)
        batch = max(int(name) for name in self._files.names("commits"))
        metadata = json.loads(self._files.files[f"offsets/{batch}"].split(b"\n")[1])
        changed = {SHUFFLE_PARTITIONS: str(target.partitions), PROVIDER: CLASSES[target.provider]}
        if f"offsets/{batch + 1}" not in self._files.files:
            batch += 1
        self._files.files[f"offsets/{batch}"] = offsets({**metadata["conf"], **changed})
        self._files.files[f"commits/{batch}"] = commit(target.format)
        self.rows -= self._lossy
        return batch

    def recover(self) -> bool:
        self.calls.append("recover")
        work = [path for path in self._files.files if path.startswith(".spark-elastic-rewrite/")]
        for path in work:
            del self._files.files[path]
        return bool(work)

    def undo(self, batch: int) -> None:
        self.calls.append(f"undo {batch}")
        for log in ("offsets", "commits"):
            self._files.files.pop(f"{log}/{batch}", None)
        self.rows = 10

    def forget(self) -> None:
        self.calls.append("forget")

    def fill_sink_log(self, folder: str, batch: int) -> None:
        self.calls.append(f"fill {folder} {batch}")


@contextmanager
def no_progress(*_: Any) -> Iterator[None]:
    yield
