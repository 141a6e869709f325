"""Which policies say how many slots a query should have: one of them, or a chain."""

from __future__ import annotations

import difflib
import re

from spark_elastic.core.keys.key import BOOL, Key, Kind, duration, number, or_none, size, whole
from spark_elastic.core.keys.periods import ExcludedPeriod, Window, excluded_periods, is_zone, windows

DECLARED = "declared"
"""No policy at all: the declared bounds alone."""

SCHEDULE = "schedule"
"""What counts at which time of the day, and when nothing is changed."""

NAMES = (DECLARED, SCHEDULE, "autoscale")
"""The names of our own policies; `core/policies/planner.py` has them."""

PolicyChain = tuple[str, ...]
"""Names of policies, in the order in which they are asked."""


_WORD = r"[^\W\d]\w*"
_CLASS = re.compile(rf"{_WORD}(\.{_WORD})*:{_WORD}")
_ENTRY_POINT = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*")
_SLIP = 0.9
"""So much like one of ours a name is taken for a slip, and not for that of an installed policy."""


def may_be_custom(name: str) -> bool:
    """Say whether a name can be that of a custom policy: an entry point, or ``package.module:Class``.

    Whether there is one shows when it is imported, which nobody does here.
    """
    if name in NAMES or difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=_SLIP):
        return False
    return _CLASS.fullmatch(name) is not None or _ENTRY_POINT.fullmatch(name) is not None


def short(name: str) -> str:
    """Return what a policy is called in settings and in sentences: an entry point, or a class by itself."""
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
    "Who says how many slots a query should have (adaptive mode): one policy, or a chain of them such as "
    "`schedule,autoscale`, of which each keeps within the limits that those before it state, and the last "
    "one that names a number decides. `declared`: its bounds alone. `schedule`: the windows of "
    "`schedule.windows`, within its bounds. `autoscale`: what its micro-batches take and what arrives, "
    "within its bounds. Others are custom policies: a class, or an installed one by its name.",
    per_query="always",
)


# When a query is to have more or fewer slots, and when nothing is to be changed (policy `schedule`).


def _zone(text: str) -> str:
    if not is_zone(text):
        raise ValueError(text)
    return text


LONGEST_LEAD_MS = 3_600_000
"""How long before it begins a window may call for executors at most, in ms, whatever they took to come."""

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
    "Windows of time with limits, for the policy `schedule`, such as `0 8 * * MON-FRI for 10h name=day "
    "lowerBound=4 upperBound=32 minExecutors=6`: fewest and most slots of each query, fewest executors of "
    "the application; more of them with `;` between. Where windows overlap, the first one counts.",
    per_query="always",
)
EXCLUDED = Key[tuple[ExcludedPeriod, ...]](
    "schedule.excludedPeriods",
    excluded_periods(),
    (),
    "Periods in which policies change nothing, such as `0 18 24 12 * for 2d name=christmas`; with "
    "`allow=scaleUp` they only scale nothing down. Needs the policy `schedule`.",
    per_query="always",
)
LEAD_MS = Key[int | None](
    "schedule.leadTime",
    or_none(duration(0, LONGEST_LEAD_MS)),
    None,
    "How long before a window begins its executors are requested, at most 1h. None: as long as executors "
    "took to come, the slowest of the last ten, and 1min before any was measured.",
    per_query="always",
)


# What `autoscale` goes by, and how many executors an application may have.


LOAD = Key[float | None](
    "autoscale.load",
    or_none(number("above 0, up to 1", lambda value: 0 < value <= 1, "0.75")),
    None,
    "Part of the trigger interval that a micro-batch is to take. Without an interval: the rows "
    "that arrive, as a part of those that it can process. None: as much as the variation of the input "
    "leaves, 0.8 to 0.93.",
    per_query="always",
)
BAND = Key(
    "autoscale.loadBand",
    number("from 0 to 0.5", lambda value: 0 <= value <= 0.5, "0.1"),
    0.1,
    "How far the load may be above `autoscale.load` before more slots are wanted. Down there is no band but "
    "within 10 min of a step up: then as many slots stay as a target lower by so much needs.",
    per_query="always",
)
MAX_LAG_MS = Key[int | None](
    "autoscale.maxLag",
    or_none(duration(1_000)),
    None,
    "Longest time from when a row is in the source until its micro-batch is committed. None: only the load "
    "counts.",
    per_query="always",
)
CATCH_UP_MS = Key(
    "autoscale.catchUp",
    duration(1_000),
    600_000,
    "Time in which rows that have piled up are to be processed, besides those that arrive; "
    "`autoscale.maxLag` if that is shorter.",
    per_query="always",
)
BACKPRESSURE = Key(
    "autoscale.backpressure",
    BOOL,
    True,
    "Whether micro-batches read no more of Kafka than they process in about their trigger interval, so that "
    "one of them does not read a whole backlog. Sources with `maxOffsetsPerTrigger` or "
    "`minOffsetsPerTrigger` keep that.",
    per_query="always",
)
WINDOW_MS = Key(
    "autoscale.scaleDownWindow",
    duration(),
    300_000,
    "A query is scaled down to the most that it has needed in this time. It is scaled up at once.",
    per_query="always",
)
MOST_DOWN = Key(
    "autoscale.scaleDownMaxFactor",
    number("above 0, up to 1", lambda value: 0 < value <= 1, "0.6"),
    0.6,
    "Largest part of its slots that a query gives up in one step.",
    per_query="always",
)
BATCH_GAIN = Key[float | None](
    "autoscale.batchGain",
    or_none(number("0 or above", lambda value: value >= 0, "1")),
    1.0,
    "Batch stages get one more executor if it saves them so many times the time that it takes to come. More: "
    "fewer executors, longer jobs. None: nothing is requested for them (adaptive mode, `policy autoscale`).",
)
MIN_EXECUTORS = Key(
    "minExecutors",
    whole(0),
    0,
    "Fewest executors that are kept, whatever queries need (adaptive mode).",
)
MAX_EXECUTORS = Key[int | None](
    "maxExecutors",
    or_none(whole(1)),
    None,
    "Most executors that are requested, whatever queries need (adaptive mode).",
)
QUOTA_CORES = Key[int | None](
    "quota.cores",
    or_none(whole(1)),
    None,
    "Most cores that requested executors have together (adaptive mode): as many are requested as fit.",
)
QUOTA_MEMORY = Key[int | None](
    "quota.memory",
    or_none(size(1)),
    None,
    "Most memory that requested executors have together, as the cluster manager counts it: overhead, "
    "off-heap memory and that of Python are among it, but on Standalone (adaptive mode).",
)
