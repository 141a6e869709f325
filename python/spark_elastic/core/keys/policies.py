"""The policies that decide how many slots a query should have: one of them, or a chain."""

from __future__ import annotations

import difflib
import re

from spark_elastic.core.keys.key import BOOL, Key, Kind, duration, number, or_none, size, whole
from spark_elastic.core.keys.periods import ExcludedPeriod, Window, excluded_periods, is_zone, windows

DECLARED = "declared"
"""No policy at all: the declared bounds alone."""

SCHEDULE = "schedule"
"""Limits by the time of the day, and periods without changes."""

NAMES = (DECLARED, SCHEDULE, "autoscale")
"""The names of the built-in policies; `core/policies/planner.py` has them."""

PolicyChain = tuple[str, ...]
"""Names of policies, in the order in which they are asked."""


_WORD = r"[^\W\d]\w*"
_CLASS = re.compile(rf"{_WORD}(\.{_WORD})*:{_WORD}")
_ENTRY_POINT = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*")
_SLIP = 0.9
"""A name at least this similar to a built-in one counts as a typo, not as an installed policy."""


def may_be_custom(name: str) -> bool:
    """Return whether a name can be that of a custom policy: an entry point, or ``package.module:Class``.

    Whether the policy exists only shows when it is imported, which does not happen here.
    """
    if name in NAMES or difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=_SLIP):
        return False
    return _CLASS.fullmatch(name) is not None or _ENTRY_POINT.fullmatch(name) is not None


def short(name: str) -> str:
    """Return a policy's name in settings and sentences: an entry point, or a class without its module."""
    return name.rpartition(":")[2]


def chain(names: tuple[str, ...]) -> Kind[PolicyChain]:
    """Allow one of `names` or a custom policy, or several with commas between them, each once.

    `declared` stands alone.
    """

    def ours(part: str) -> str:
        return part.lower() if part.lower() in names else part

    def parse(text: str) -> PolicyChain:
        found = tuple(ours(part.strip()) for part in text.split(","))
        alone = DECLARED not in found or found == (DECLARED,)
        known = all(name in names or may_be_custom(name) for name in found)
        if not (alone and known and len(set(map(short, found))) == len(found)):
            raise ValueError(text)
        return found

    return Kind(
        name=" \\| ".join(f"`{name}`" for name in names) + " \\| `package.module:Class`, …",
        parse=parse,
        format=",".join,
        allowed=f"one of {', '.join(names)}, the name of an installed policy or package.module:Class, or "
        "several of them, each once, with commas between "
        f"({DECLARED} only alone)",
        example=names[0],
        choices=names,
        listed=True,
    )


POLICY = Key[PolicyChain](
    "policy",
    chain(NAMES),
    (DECLARED,),
    "What decides how many slots a query should have (adaptive mode): one policy, or a chain such as "
    "`schedule,autoscale`. In a chain, each policy stays within the limits of those before it, and the "
    "last one that names a number decides. `declared`: the bounds alone. `schedule`: the windows of "
    "`schedule.windows`, within the bounds. `autoscale`: batch times and input rate, within the bounds. "
    "Others are custom policies: a class, or the name of an installed one.",
    per_query="always",
)


# ---- When a query should have more or fewer slots, and when nothing changes (policy `schedule`).


def _zone(text: str) -> str:
    if not is_zone(text):
        raise ValueError(text)
    return text


LONGEST_LEAD_MS = 3_600_000
"""Longest time, in ms, before its start at which a window may request executors, however slowly they come."""

ZONE = Key(
    "schedule.zone",
    Kind(
        name="time zone",
        parse=_zone,
        format=str,
        allowed="the name of a time zone in the IANA database, such as UTC or Europe/Berlin",
        example="Europe/Berlin",
    ),
    "UTC",
    "Time zone of the cron expressions below.",
    per_query="always",
)
WINDOWS = Key[tuple[Window, ...]](
    "schedule.windows",
    windows(),
    (),
    "Time windows with limits for the policy `schedule`, such as `0 8 * * MON-FRI for 10h name=day "
    "lowerBound=4 upperBound=32 minExecutors=6`: min and max slots of each query, min executors of the "
    "application. Separate several by `;`; where they overlap, the first one counts.",
    per_query="always",
)
EXCLUDED = Key[tuple[ExcludedPeriod, ...]](
    "schedule.excludedPeriods",
    excluded_periods(),
    (),
    "Periods in which policies change nothing, such as `0 18 24 12 * for 2d name=christmas`; with "
    "`allow=scaleUp` they only do not scale down. Needs the policy `schedule`.",
    per_query="always",
)
LEAD_MS = Key[int | None](
    "schedule.leadTime",
    or_none(duration(0, LONGEST_LEAD_MS)),
    None,
    "How long before a window starts its executors are requested, at most 1h. None: the longest of the "
    "last ten start-up times of executors, 1min before any was measured.",
    per_query="always",
)


# ---- Parameters of `autoscale`, and the number of executors that an application may have.


LOAD = Key[float | None](
    "autoscale.load",
    or_none(number("above 0, up to 1", lambda value: 0 < value <= 1, "0.75")),
    None,
    "Share of the trigger interval that a micro-batch should take. Without an interval: input rate "
    "divided by processing rate. None: chosen by the variation of the input, 0.8 to 0.93.",
    per_query="always",
)
BAND = Key(
    "autoscale.loadBand",
    number("from 0 to 0.5", lambda value: 0 <= value <= 0.5, "0.1"),
    0.1,
    "How far the load may exceed `autoscale.load` before scaling up. There is no band for scaling down, "
    "except within 10 min after scaling up: then the target is lower by as much.",
    per_query="always",
)
MAX_LAG_MS = Key[int | None](
    "autoscale.maxLag",
    or_none(duration(1_000)),
    None,
    "Longest time from a row's arrival in the source to the commit of its micro-batch. None: only the "
    "load counts.",
    per_query="always",
)
CATCH_UP_MS = Key(
    "autoscale.catchUp",
    duration(1_000),
    600_000,
    "Time in which a backlog should be processed in addition to new rows; `autoscale.maxLag` if that is "
    "shorter.",
    per_query="always",
)
BACKPRESSURE = Key(
    "autoscale.backpressure",
    BOOL,
    True,
    "Whether micro-batches read no more from Kafka than they can process in about one trigger interval, "
    "so that a backlog does not become one huge batch. Sources with `maxOffsetsPerTrigger` or "
    "`minOffsetsPerTrigger` keep their own limit.",
    per_query="always",
)
WINDOW_MS = Key(
    "autoscale.scaleDownWindow",
    duration(),
    300_000,
    "A query scales down to its highest need within this time. It scales up at once.",
    per_query="always",
)
MOST_DOWN = Key(
    "autoscale.scaleDownMaxFactor",
    number("above 0, up to 1", lambda value: 0 < value <= 1, "0.6"),
    0.6,
    "Largest share of its slots that a query gives up in one step.",
    per_query="always",
)
BATCH_GAIN = Key[float | None](
    "autoscale.batchGain",
    or_none(number("0 or above", lambda value: value >= 0, "1")),
    1.0,
    "Batch stages get one more executor if it saves this many times its start-up time. Higher: fewer "
    "executors, longer jobs. None: no executors are requested for batch stages (adaptive mode, `policy "
    "autoscale`).",
)
MIN_EXECUTORS = Key(
    "minExecutors",
    whole(0),
    0,
    "Min executors to keep, whatever queries need (adaptive mode).",
)
MAX_EXECUTORS = Key[int | None](
    "maxExecutors",
    or_none(whole(1)),
    None,
    "Max executors to request, whatever queries need (adaptive mode).",
)
QUOTA_CORES = Key[int | None](
    "quota.cores",
    or_none(whole(1)),
    None,
    "Max cores of all requested executors together (adaptive mode); only as many executors are "
    "requested as fit.",
)
QUOTA_MEMORY = Key[int | None](
    "quota.memory",
    or_none(size(1)),
    None,
    "Max memory of all requested executors together, as the cluster manager counts it: with overhead, "
    "off-heap and Python memory, except on Standalone (adaptive mode).",
)
