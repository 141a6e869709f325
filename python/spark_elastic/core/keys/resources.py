"""Bounds of queries, the executors kept for them, and where their savepoints go."""

from __future__ import annotations

from spark_elastic.core.keys.key import Key
from spark_elastic.core.keys.kinds import FOLDER, PREFIX, any_text, duration, or_none, several, whole

POLICY_FILE = Key[str | None](
    "policyFile",
    or_none(any_text("local file", "/etc/spark-elastic/policy.yaml")),
    None,
    "YAML file with the bounds (adaptive mode) and settings of queries by name; it is read again when it "
    "changes.",
)
SLOT_IDLE_MS = Key(
    "slotIdleTimeout",
    duration(1_000),
    50_000,
    "How long executors beyond those that the declared bounds call for are kept (adaptive mode).",
)
SAVEPOINT_DIR = Key[str | None](
    "savepointDir",
    or_none(FOLDER),
    None,
    "Folder under which savepoints are written if a request names none: a path, or a URI of any "
    "Hadoop file system.",
)
SAVEPOINT_PREFIXES = Key[tuple[str, ...]](
    "savepoint.allowedPrefixes",
    several(PREFIX),
    (),
    "Further folders under which who asks for a savepoint may have it written, with commas between them. All "
    "others are refused, since the driver writes it with its own credentials.",
)
SAVEPOINTS_KEPT = Key(
    "savepoint.keep",
    whole(0),
    0,
    "How many savepoints of a query are kept in `savepointDir`: when one is complete there, the oldest "
    "beyond that are removed, of those only that have a name and a mark of ours. 0: all are kept.",
)
