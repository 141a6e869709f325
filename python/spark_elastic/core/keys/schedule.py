"""When a query is to have more or fewer slots, and when nothing is to be changed (policy `schedule`)."""

from __future__ import annotations

from spark_elastic.core.calendar import is_zone
from spark_elastic.core.keys.key import Key
from spark_elastic.core.keys.kinds import Kind, duration, or_none
from spark_elastic.core.keys.periods import ExcludedPeriod, Window, excluded_periods, windows


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
