"""Bounds of queries, the executors kept for them, and the location of their savepoints."""

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
    "YAML file with bounds (adaptive mode) and settings of queries by name; it is read again when it "
    "changes.",
)
SLOT_IDLE_MS = Key(
    "slotIdleTimeout",
    duration(1_000),
    50_000,
    "How long executors that the declared bounds do not need are kept (adaptive mode).",
)
SAVEPOINT_DIR = Key[str | None](
    "savepointDir",
    or_none(FOLDER),
    None,
    "Folder for savepoints if a request names none: a path, or a URI of any Hadoop file system.",
)
SAVEPOINT_PREFIXES = Key[tuple[str, ...]](
    "savepoint.allowedPrefixes",
    several(PATH_PREFIX),
    (),
    "Further folders, separated by commas, that a request for a savepoint may name. All others are "
    "refused, since the driver writes with its own credentials.",
)
SAVEPOINTS_KEPT = Key(
    "savepoint.keep",
    whole(0),
    0,
    "Number of savepoints kept per query in `savepointDir`. When a new one is complete, older ones are "
    "removed if spark-elastic wrote them there. 0: all are kept.",
)


# ---- Which decisions are kept and shown, and whether they are carried out.


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
    "Local folder for the decision journal; none: no journal. auto: `spark-elastic-USER/` in "
    "`spark.eventLog.dir` if event logs are on and that is a local folder, otherwise in Spark's "
    "temporary folder (`SPARK_LOCAL_DIRS`, `spark.local.dir`, `/tmp`), where journals are removed after "
    "seven days.",
)
JOURNAL_MAX_SIZE = Key(
    "journal.maxSize",
    size(64 << 10),
    64 << 20,
    "Largest size of an application's journal; the oldest part is dropped first.",
)
REST_ENABLED = Key(
    "rest.enabled",
    BOOL,
    True,
    "Whether the REST API is served, at `/elastic/api/v1` under the Spark UI.",
)
REST_READ_ONLY = Key(
    "rest.readOnly",
    BOOL,
    False,
    "Whether the REST API refuses all changes.",
)
REST_ALLOWED_HOSTS = Key[tuple[str, ...]](
    "rest.allowedHosts",
    several(HOST),
    (),
    "Host names, separated by commas, under which the REST API accepts changes in addition to those of "
    "the driver's UI and plain addresses: those of a reverse proxy in front of it.",
)
TARGET_LOAD = Key(
    "metrics.targetLoad",
    number("from 0.05 to 1", lambda value: 0.05 <= value <= 1, "0.75"),
    0.75,
    "Load (time of a micro-batch divided by its trigger interval) for which metrics report the slots "
    "that queries need. It decides nothing: it is meant for whatever scales the workers.",
)
PRICE = Key[float | None](
    "pricePerCoreHour",
    or_none(number("of at least 0", lambda value: value >= 0, "0.05")),
    None,
    "What a core of an executor costs per hour, in any currency: the *Elastic* tab and `GET /overview` then "
    "also show what the executors have cost. It decides nothing.",
)
ADVISE_ONLY = Key(
    "adviseOnly",
    BOOL,
    False,
    "Dry run: decide and report as usual, but change nothing.",
)
