"""The archives of checkpoints: one for each Spark and store, with what a query needs to go on from them."""

from __future__ import annotations

import io
import json
import lzma
import re
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from integration.old_checkpoints.queries import QUERIES

FOLDER = Path(__file__).parent / "archives"
# The input's folder, which Spark checks when a query goes on, in the log of its files.
_NO_SOURCE = b"file:///source"
_NO_PLACE = b"file:/checkpoint/"
_SOURCE = re.compile(rb'(?<="path":")file:[^"]*(?=/)')

# All queries with RocksDB would make two thirds of a megabyte with each Spark.
_ALL_IN_ROCKSDB = ((4, 1),)
_SOME = (
    "aggregation_many_types",
    "aggregation_update",
    "deduplication_watermark",
    "deduplication_within_watermark",
    "flat_groups_event_time_format_1",
    "flat_groups_processing_time_format_2",
    "join_full_outer_format_2",
    "join_inner_format_1",
    "join_then_window",
    "limit",
    "pandas_groups_event_time",
    "processor_avro",
    "processor_expiring",
    "processor_in_pandas_timers",
    "processor_lasting",
    "processor_timers",
    "session_window",
)


def can_write(name: str, store: str, spark: tuple[int, int]) -> bool:
    """Return whether a Spark can start a query with a store."""
    query = QUERIES[name]
    return query.since <= spark <= query.until and (store == "rocksdb" or not query.rocksdb)


@frozen
class Archive:
    """The checkpoints that one Spark (its full version) has written with one store."""

    spark: str
    store: str

    @property
    def file(self) -> Path:
        return FOLDER / f"spark-{self.spark}-{self.store}.tar.xz"

    @property
    def queries(self) -> list[str]:
        """The names of the queries whose checkpoints it has."""
        major, minor, _ = map(int, self.spark.split("."))
        some = self.store == "rocksdb" and (major, minor) not in _ALL_IN_ROCKSDB
        return [name for name in (_SOME if some else QUERIES) if can_write(name, self.store, (major, minor))]

    def pack(self, folder: Path) -> None:
        """Make it of the checkpoints in a folder, in which each has the name of its query."""
        with (
            lzma.open(self.file, "wb", preset=9 | lzma.PRESET_EXTREME) as small,
            tarfile.open(fileobj=small, mode="w") as tar,
        ):
            for checkpoint in sorted(folder.iterdir()):
                for path, content in _content(checkpoint):
                    info = tarfile.TarInfo(str(path.relative_to(folder)))
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))

    def unpack(self, folder: Path) -> None:
        """Put its checkpoints into a folder; `copy` makes one of them fit for use."""
        with tarfile.open(self.file) as tar:
            tar.extractall(folder, filter="data")


def copy(unpacked: Path, checkpoint: Path, source: Path) -> None:
    """Copy an unpacked checkpoint, for a query that reads the folder `source`."""
    shutil.copytree(unpacked, checkpoint)
    for log in checkpoint.glob("sources/*/*"):
        log.write_bytes(log.read_bytes().replace(_NO_SOURCE, source.as_uri().encode()))
    for file in _metadata(checkpoint):
        file.write_bytes(file.read_bytes().replace(_NO_PLACE, f"file:{checkpoint}/".encode()))


def _content(checkpoint: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the files that a query needs, with places that `copy` replaces."""
    superseded, metadata = _superseded(checkpoint), _metadata(checkpoint)
    for path in sorted(path for path in checkpoint.rglob("*") if path.is_file()):
        file = path.with_suffix("") if path.suffix == ".crc" else path
        # No checksum is missed. Those of Hadoop are hidden; Spark's of a zip file are not right any more.
        if file in superseded or path.name.startswith(".") or (file != path and file.suffix == ".zip"):
            continue
        content = path.read_bytes()
        if path.suffix == ".zip":
            content = _unpacked(content)
        elif path in metadata:
            content = content.replace(f"file:{checkpoint}/".encode(), _NO_PLACE)
        elif path.is_relative_to(checkpoint / "sources"):
            content = _SOURCE.sub(_NO_SOURCE, content)
        yield path, content


def _metadata(checkpoint: Path) -> set[Path]:
    """Return the files that tell of operators; some name files with schemas by their whole path."""
    return {path for path in checkpoint.glob("state/*/_metadata/**/*") if path.is_file()}


def archives() -> list[Archive]:
    """Return all archives, the oldest Spark first."""
    names = sorted(file.name.removesuffix(".tar.xz") for file in FOLDER.glob("*.tar.xz"))
    return [Archive(*name.removeprefix("spark-").rsplit("-", 1)) for name in names]


def _superseded(checkpoint: Path) -> set[Path]:
    """Return the files of states that are older than the newest snapshot of their partition."""
    found: set[Path] = set()
    for folder in {path.parent for path in checkpoint.glob("state/**/*") if path.suffix in _OF_A_VERSION}:
        files = [path for path in folder.iterdir() if path.suffix in _OF_A_VERSION]
        snapshots = [path for path in files if path.suffix in _SNAPSHOTS]
        if snapshots:
            newest = max(snapshots, key=_version)
            found |= {path for path in files if _version(path) <= _version(newest)} - {newest}
            kept = _tables(newest) if newest.suffix == ".zip" else set()
            found |= {path for path in folder.glob("SSTs/*.sst") if path.name not in kept}
    return found


_SNAPSHOTS = (".snapshot", ".zip")
_OF_A_VERSION = (*_SNAPSHOTS, ".delta", ".changelog")


def _version(path: Path) -> int:
    return int(path.name.split(".", 1)[0])


def _tables(snapshot: Path) -> set[str]:
    """Return the names of the files to which a snapshot of RocksDB refers."""
    with zipfile.ZipFile(snapshot) as of_rocksdb:
        _, listed = of_rocksdb.read("metadata").decode().split("\n", 1)
    return {file["dfsSstFileName"] for file in json.loads(listed)["sstFiles"]}


def _unpacked(content: bytes) -> bytes:
    """Return a zip file without compression: the archive compresses much better what all of them have."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as packed, zipfile.ZipFile(target, "w") as plain:
        for entry in packed.infolist():
            plain.writestr(zipfile.ZipInfo(entry.filename), packed.read(entry))
    return target.getvalue()
