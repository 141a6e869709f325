"""When a cron expression is due, in a time zone: the only module of the core that knows what day it is.

cronsim follows Debian's cron where clocks change: what is due in the hour that is left out is due right after
it, and what is due in the hour that comes twice is due once, unless it is due each hour anyway. `zoneinfo`
reads a zone from the machine's database (or from tzdata) when it is first named; the same name and time give
the same answer from then on.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

DAY_MS = 86_400_000

_FIELDS = 5
_SLACK = timedelta(hours=4)
"""What is due is counted from so long before a day, so that it does not depend on where counting began."""


def wrong_with_cron(text: str) -> str | None:
    """Say which part of a cron expression cannot be, None if there is none."""
    if len(text.split()) != _FIELDS:
        return f"{len(text.split())} fields"
    try:
        next(CronSim(text, datetime(2026, 1, 1)))
    except CronSimError as error:
        return str(error).replace("Bad", "no valid")
    except StopIteration:
        return "no such day within 50 years"
    return None


def is_zone(text: str) -> bool:
    """Say whether a time zone is known by this name."""
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        return False
    return True


@lru_cache(maxsize=4_096)
def due(cron: str, zone: str, day: int) -> tuple[int, ...]:
    """Return when an expression is due (epoch ms) on the UTC day of this number since the epoch, in order.

    Expression and zone have been checked.
    """
    begin = datetime.fromtimestamp(day * DAY_MS / 1_000, timezone.utc)
    end = begin + timedelta(days=1)
    found = []
    for local in CronSim(cron, (begin - _SLACK).astimezone(ZoneInfo(zone))):
        if local >= end:
            break
        if local >= begin:
            found.append(round(local.timestamp()) * 1_000)
    return tuple(sorted(set(found)))
