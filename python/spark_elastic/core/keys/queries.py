"""What can only be set for a query by name: its bounds, how it shares slots, a savepoint to start from."""

from __future__ import annotations

import re

from spark_elastic.core.bounds.requirements import MAX_PARALLELISM
from spark_elastic.core.keys.key import Key, Kind, any_text, number, whole

_MOST = 1_000_000
_GROUP = re.compile(r"[\w.-]{1,60}", re.ASCII)
_BOUND = whole(1, MAX_PARALLELISM, unbounded=True)


def _group(text: str) -> str:
    if not _GROUP.fullmatch(text):
        raise ValueError(text)
    return text


LOWER = Key[int | None](
    "lowerBound",
    _BOUND,
    None,
    "Min partitions (adaptive mode). -1: no bound. With `.source-0` after the name: min tasks that read the "
    "query's first source. In a name, `*` matches any text and `?` one character, in all settings of queries "
    "by name. The policy file takes precedence.",
    per_query="always",
)
UPPER = Key[int | None](
    "upperBound",
    _BOUND,
    None,
    "Max partitions (adaptive mode). -1: no bound. With `.source-0` after the name: max tasks that read the "
    "query's first source.",
    per_query="always",
)
TARGET = Key[int | None](
    "target",
    _BOUND,
    None,
    "Partitions that the query should have where no policy decides, within its bounds: executors are "
    "requested for that target, and no query gets more than its target before all have theirs (adaptive "
    "mode). -1: no target.",
    per_query="always",
)
PRIORITY = Key[int](
    "priority",
    whole(-_MOST, _MOST),
    0,
    "If there are too few slots for all lower bounds, queries with a higher priority get theirs first; of "
    "equal ones, the one submitted first (adaptive mode).",
    per_query="always",
)
WEIGHT = Key[float](
    "weight",
    number(f"above 0, up to {_MOST}", lambda value: 0 < value <= _MOST, "1"),
    1.0,
    "If there are too few slots for all upper bounds, slots above the lower bounds are divided by weight "
    "(adaptive mode).",
    per_query="always",
)
SLOT_SHARING_GROUP = Key[str | None](
    "slotSharingGroup",
    Kind(
        name="name",
        parse=_group,
        format=str,
        allowed="a name of up to 60 letters, digits, dots, dashes and underscores",
        example="etl",
    ),
    None,
    "Queries in one group use the same slots: a group needs as many as its widest query, and groups add up "
    "(adaptive mode). With `.source-0` after the name: the group of its first source. None: a group of its "
    "own if anything is declared for the query, otherwise `default`.",
    per_query="always",
)
SAVEPOINT = Key[str | None](
    "savepoint",
    any_text("folder", "hdfs://namenode/savepoints/savepoint-1"),
    None,
    "Savepoint (a folder) that the query with this name starts from if its checkpoint is new: offsets and "
    "state, under a new query id. A checkpoint that already has a micro-batch is resumed instead. No "
    "patterns of names.",
    per_query="start",
)

BOUNDS = (LOWER, UPPER, TARGET)

DECLARED = (*BOUNDS, PRIORITY, WEIGHT, SLOT_SHARING_GROUP)
"""What is declared for a query, in settings or in the policy file; SAVEPOINT is a setting alone."""

OF_SHUFFLE = (*BOUNDS, SLOT_SHARING_GROUP)
OF_SOURCE = (LOWER, UPPER, SLOT_SHARING_GROUP)
"""What a single vertex can have."""
