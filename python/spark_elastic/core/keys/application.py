"""Bounds of queries, the executors kept for them, and where their savepoints go."""

from __future__ import annotations

from spark_elastic.core.keys.key import (
    BOOL,
    FOLDER,
    HOST,
    PATH_PREFIX,
    Key,
    any_text,
    duration,
    number,
    or_none,
    several,
    size,
    whole,
)

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
    several(PATH_PREFIX),
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


# What is kept and shown of the decisions, and whether anything is done about them.


HISTORY_SIZE = Key(
    "history.size",
    whole(1),
    100,
    "Number of rescales kept per query.",
)
JOURNAL_DIR = Key[str | None](
    "journal.dir",
    or_none(any_text("local folder", "/var/log/spark-elastic")),
    "auto",
    "Where the decision journal is written; none: nowhere. auto: in `spark-elastic-USER/`, which is in "
    "`spark.eventLog.dir` if event logs are on and that is a local folder, else among Spark's temporary "
    "files (`SPARK_LOCAL_DIRS`, `spark.local.dir`, `/tmp`), from where one is removed after seven days.",
)
JOURNAL_MAX_SIZE = Key(
    "journal.maxSize",
    size(64 << 10),
    64 << 20,
    "Most room that an application's journal takes; the oldest part goes first.",
)
REST_ENABLED = Key(
    "rest.enabled",
    BOOL,
    True,
    "Whether the REST API is there, at `/elastic/api/v1` under the Spark UI.",
)
REST_READ_ONLY = Key(
    "rest.readOnly",
    BOOL,
    False,
    "Whether the REST API refuses every change.",
)
REST_ALLOWED_HOSTS = Key[tuple[str, ...]](
    "rest.allowedHosts",
    several(HOST),
    (),
    "Names of hosts under which the REST API takes changes, beside those that the driver's UI has itself and "
    "addresses: those of a reverse proxy before it, with commas between them.",
)
TARGET_LOAD = Key(
    "metrics.targetLoad",
    number("from 0.05 to 1", lambda value: 0.05 <= value <= 1, "0.75"),
    0.75,
    "The load (time of a micro-batch by its trigger interval) for which the metrics say how many slots the "
    "queries need. Nothing is decided by it here: it is for those who scale the workers.",
)
ADVISE_ONLY = Key(
    "adviseOnly",
    BOOL,
    False,
    "Dry run: decide and report as usual, but change nothing.",
)
