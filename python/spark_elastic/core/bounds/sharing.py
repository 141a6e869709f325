"""How a query shares the slots with others: what somebody has declared of that, and what follows from it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import field, frozen

from spark_elastic.core.bounds.requirements import DEFAULT_GROUP, NO_PRIORITY, NO_WEIGHT
from spark_elastic.core.name_patterns import matching

_MOST = 1_000_000
_GROUP = re.compile(r"[\w.-]{1,60}", re.ASCII)
_WHOLE = re.compile(r"-?[0-9]{1,7}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,7}(\.[0-9]{1,9})?|\.[0-9]{1,9}", re.ASCII)


@frozen(kw_only=True)
class WantedSharing:
    """What was written about one query; None says nothing.

    `group` is the slot-sharing group of its vertices, but of those in `groups`, which is by vertex id.
    """

    priority: int | None = None
    weight: float | None = None
    group: str | None = None
    groups: Mapping[str, str] = field(factory=dict)

    @property
    def says_something(self) -> bool:
        """Whether anything is written."""
        return self != NOTHING_WANTED

    def over(self, other: WantedSharing) -> WantedSharing:
        """Return this, with that of `other` where it says nothing."""
        return WantedSharing(
            priority=other.priority if self.priority is None else self.priority,
            weight=other.weight if self.weight is None else self.weight,
            group=other.group if self.group is None else self.group,
            groups={**other.groups, **self.groups},
        )


NOTHING_WANTED = WantedSharing()


def sharing_by_name(name: str | None, said: Mapping[str, WantedSharing]) -> WantedSharing:
    """Put together what is said by name or pattern for the query of this name."""
    wanted = NOTHING_WANTED
    for pattern in matching(name, said):
        wanted = said[pattern].over(wanted)
    return wanted


def read(name: str, text: str) -> WantedSharing | None:
    """Read the priority, weight or slotSharingGroup of a query, None if the text is none."""
    match name:
        case "priority" if _WHOLE.fullmatch(text) and abs(int(text)) <= _MOST:
            return WantedSharing(priority=int(text))
        case "weight" if _NUMBER.fullmatch(text) and 0 < float(text) <= _MOST:
            return WantedSharing(weight=float(text))
        case "slotSharingGroup" if _GROUP.fullmatch(text):
            return WantedSharing(group=text)
    return None


def what_is_allowed(name: str) -> tuple[str, str]:
    """Say what `read` takes under this name, and give an example."""
    return {
        "priority": (f"a whole number from -{_MOST} to {_MOST}", "1"),
        "weight": (f"a number above 0, up to {_MOST}", "1"),
        "slotSharingGroup": ("a name of up to 60 letters, digits, dots, dashes and underscores", "etl"),
    }[name]


@frozen(kw_only=True)
class Sharing:
    """What counts for one query; `group` is that of a vertex which is not in `groups`."""

    group: str
    groups: Mapping[str, str]
    priority: int
    weight: float

    def group_of(self, vertex: str) -> str:
        """Name the slot-sharing group of a vertex."""
        return self.groups.get(vertex, self.group)


def sharing(query: str, wanted: WantedSharing, *, bounded: bool) -> Sharing:
    """Say how a query shares slots; `bounded` says that bounds are declared for it.

    One for which nothing is declared is in the default group, as all queries of plain Spark share all slots.
    One for which something is has slots of its own, unless it names a group.
    """
    priority = NO_PRIORITY if wanted.priority is None else wanted.priority
    weight = NO_WEIGHT if wanted.weight is None else wanted.weight
    declared = bounded or (priority, weight) != (NO_PRIORITY, NO_WEIGHT)
    group = wanted.group or (query if declared else DEFAULT_GROUP)
    return Sharing(group=group, groups=wanted.groups, priority=priority, weight=weight)
