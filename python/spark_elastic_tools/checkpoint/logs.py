"""Parse the files of a checkpoint: its logs, and what it records about its state."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from attrs import frozen

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
GROUPS_FORMAT = "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion"

_STRICT = "spark.sql.streaming.statefulOperator.useStrictDistribution"
_PRUNE = "sql.optimizer.pruneFiltersCanPruneStreamingSubplan"
# Each Spark records all settings that it knows of, so the newest setting tells the version.
_SINCE = (
    ("spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled", "Spark 4.3 or later"),
    ("spark.sql.streaming.stateStore.rowChecksum.enabled", "Spark 4.2"),
    (ENCODING, "Spark 4.0 or 4.1"),
    (f"spark.{_PRUNE}", "Spark 3.5.5 or a later 3.5"),
    (f"spark.databricks.{_PRUNE}", "Spark 3.5.4"),
    (_STRICT, "Spark 3.2.2 to 3.5.3"),
    ("spark.sql.streaming.stateStore.rocksdb.formatVersion", "Spark 3.2.0 or 3.2.1"),
)
_OLDEST = "Spark before 3.2"


class FormatError(ValueError):
    """A file does not have the form that Spark writes; the message says what it has."""


@frozen
class Offsets:
    """A started batch: an entry of the log `offsets`.

    `sources` has a line for each source, with the offset up to which the batch reads.
    """

    conf: Mapping[str, str]
    timestamp_ms: int
    sources: tuple[str, ...]


@frozen
class Operator:
    """A stateful operator: its number in the plan, its name if Spark recorded it, the names of its stores.

    `keyed` is False if all its state belongs to one key, and so to one partition; None if that is unknown.
    """

    id: int
    name: str | None
    stores: tuple[str, ...]
    keyed: bool | None = None


def parse_offsets(data: bytes) -> Offsets:
    """Parse an entry of the log `offsets`. Raises FormatError."""
    _, lines = _versioned(data)
    metadata = _json(lines[0]) if lines and lines[0].strip() else {}
    conf = metadata.get("conf", {})
    return Offsets(conf, int(metadata.get("batchTimestampMs", 0)), tuple(lines[1:]))


def parse_commit(data: bytes) -> int:
    """Return the checkpoint format, 1 or 2, of an entry of the log `commits`. Raises FormatError.

    Format 2 records an id for the state that each partition has written, and format 1 has none.
    """
    _, lines = _versioned(data)
    metadata = _json(lines[0]) if lines and lines[0].strip() else {}
    return 2 if metadata.get("stateUniqueIds") else 1


def parse_operator(data: bytes) -> Operator:
    """Parse what Spark 4.0 and later record about an operator. Raises FormatError."""
    _, lines = _versioned(data)
    metadata = _json("\n".join(lines))
    try:
        info = metadata["operatorInfo"]
        stores = tuple(str(store["storeName"]) for store in metadata["stateStoreInfo"])
        return Operator(int(info["operatorId"]), str(info["operatorName"]), stores)
    except (KeyError, TypeError) as error:
        raise FormatError(f"an operator's metadata without {error}") from error


def has_key(schema: bytes) -> bool:
    """Return whether a file with the schemas of a store names a key that can have more than one value.

    An aggregation without keys has no field in its key, a limit one field of type void. Raises FormatError.
    """
    try:
        version, rest = _utf(schema)
        key = _utf(rest)[0] if version == "v1" else _chunks(rest if version == "v2" else _family(rest))
        fields = _json(key)["fields"]
    except (struct.error, UnicodeDecodeError, KeyError, IndexError) as error:
        raise FormatError("a schema of state in an unknown form") from error
    return any(field["type"] != "void" for field in fields)


def written_by(conf: Mapping[str, str]) -> str:
    """Return the versions of Spark that can have written a batch, by the settings that it recorded."""
    return next((spark for key, spark in _SINCE if key in conf), _OLDEST)


# ---- The forms of the files


def _versioned(data: bytes) -> tuple[int, list[str]]:
    """Return the version in the first line, such as 1 for "v1", and the other lines."""
    first, *lines = data.decode("utf-8", errors="replace").split("\n")
    word = first.strip()
    if not word.startswith("v") or not word[1:].isdigit():
        raise FormatError(f"'{word[:20]}' where Spark writes a version such as v1")
    return int(word[1:]), lines


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise FormatError(f"'{text[:20]}' where Spark writes JSON") from error
    if not isinstance(found, dict):
        raise FormatError(f"'{text[:20]}' where Spark writes a JSON object")
    return found


def _utf(data: bytes) -> tuple[str, bytes]:
    """Return a string as Java's DataOutputStream.writeUTF writes it, and the bytes after it."""
    (length,) = struct.unpack_from(">H", data)
    return data[2 : 2 + length].decode("utf-8"), data[2 + length :]


def _chunks(data: bytes) -> str:
    (count,) = struct.unpack_from(">i", data)
    text, rest = "", data[4:]
    for _ in range(count):
        chunk, rest = _utf(rest)
        text += chunk
    return text


def _family(data: bytes) -> bytes:
    """Return the bytes from the key's schema on, of the first column family."""
    _, rest = _utf(data[4:])
    return rest[2:]
