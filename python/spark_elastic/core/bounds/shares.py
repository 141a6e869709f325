"""The slots that each query can use: which lower bounds are met, and how the rest is divided.

Lower bounds are added across slot-sharing groups; within a group the largest counts. Queries that have begun
come first, those of a higher priority before others. None is stopped for another's lower bound, so running
queries keep their slots while others wait. Among waiting queries the higher priority comes first, then the
earlier submission. A query that does not fit does not keep others from starting, so a wide query may wait for
long where narrow ones come and go. Batch stages are decided with all slots, not with a share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Literal

from attrs import define, field, frozen

from spark_elastic.core.bounds.requirements import Requirements, SlotGroup, add_groups

# ---- How slots are divided between groups: lower bounds first, then targets, then the rest by weight.


def allocate(groups: Mapping[str, SlotGroup], slots: int) -> Mapping[str, int] | None:
    """Divide `slots`, and return those of each group; None if the lower bounds do not fit.

    Slots above the lower bounds go to groups with a target until all have theirs, since declared wishes
    outrank undeclared ones, and then to all groups. No group gets more than its upper bound.
    """
    given = {name: group.lower for name, group in groups.items()}
    left = slots - sum(given.values())
    if left < 0:
        return None
    # Each change of the slots divides them again: whole numbers are as exact as fractions, and fast.
    weights = dict(zip(groups, _whole(group.weight for group in groups.values()), strict=True))
    targets = {name: group.target for name, group in groups.items() if group.target > group.lower}
    if targets:
        left = _raise(given, targets, weights, left)
    _raise(given, {name: group.upper for name, group in groups.items()}, weights, left)
    return given


def _raise(given: dict[str, int], tops: Mapping[str, int], weights: Mapping[str, int], left: int) -> int:
    """Divide the slots that are `left` by weight, no group above its top; return the slots that remain.

    Slots that a narrow group cannot use flow to the wider ones. Slots that are left by rounding down go one
    each to the groups with the largest remainders. Of equal ones the largest weight comes first, then the
    wider group, then the later one. With equal weights, this is Flink's rule, and Flink's vectors run through
    this code. With unequal ones, one slot more can take one from a query, as the largest-remainder method
    does.
    """
    widths = {name: top - given[name] for name, top in tops.items()}
    # With this scale, two widths by weight that are not equal are at least 1 apart.
    scale = max((weights[name] for name in tops), default=1) ** 2
    waiting = sorted(tops, key=lambda name: widths[name] * scale // weights[name])
    total = sum(weights[name] for name in tops)
    served = 0
    for name in waiting:
        if left * weights[name] < widths[name] * total:
            break
        given[name] = tops[name]
        left -= widths[name]
        total -= weights[name]
        served += 1
    divided = left
    ranked: list[tuple[int, int, int, str]] = []
    for place, name in enumerate(waiting[served:]):
        share, remainder = divmod(divided * weights[name], total)
        given[name] += share
        left -= share
        ranked.append((remainder, weights[name], place, name))
    for *_, name in sorted(ranked, reverse=True)[:left]:
        given[name] += 1
        left -= 1
    return left


def _whole(weights: Iterable[float]) -> list[int]:
    """Return whole numbers that are in exactly the same ratio as the weights."""
    ratios = [weight.as_integer_ratio() for weight in weights]
    # The denominators of floats are all powers of two.
    denominator = max((below for _, below in ratios), default=1)
    return [above * (denominator // below) for above, below in ratios]


Standing = Literal["running", "recovering", "waiting"]
"""Whether a query runs, will run again after a failure, or has not begun yet."""


@frozen(kw_only=True)
class Claim:
    """A query that wants slots."""

    query: str
    requirements: Requirements
    standing: Standing


@frozen(kw_only=True)
class Shortage:
    """Why lower bounds are not met, in slots: `needed` by the query's groups, `ahead` by others before it.

    `awaited` says that the slots can come while the query does not run, so its start waits for them.
    """

    total: int
    needed: int
    ahead: int
    awaited: bool = True

    def numbers(self) -> dict[str, float | int | str]:
        """Return the numbers for the record of a decision."""
        return {"total_slots": self.total, "needed": self.needed, "ahead": self.ahead}


@frozen(kw_only=True)
class Share:
    """What one query has of the `total` slots of its application.

    `slots` is the number that its shuffle can use. `complete` says that it could use no more, `content` that
    it has what it wants: its target, if it has one. With a `shortage` its lower bounds are not met; `slots`
    are then those that the queries before it leave. `reserved` is the number of slots for lower bounds,
    `weight` is that of its group, and `weights` is that of all groups together. `reach` is the number of
    slots that waiting tasks can bring, 0 if they bring none.
    """

    total: int = 0
    slots: int = 0
    complete: bool = False
    content: bool = False
    shortage: Shortage | None = None
    reserved: int = 0
    weight: float = 0.0
    weights: float = 0.0
    reach: int = 0

    @property
    def suffices(self) -> bool:
        """Whether the lower bounds of the query are met."""
        return self.shortage is None

    @property
    def may_start(self) -> bool:
        """Whether a start has nothing to wait for: its lower bounds are met, or only tasks bring slots."""
        return self.shortage is None or not self.shortage.awaited


@define
class _Book:
    """Groups with slots set aside for their lower bounds."""

    groups: dict[str, SlotGroup] = field(factory=dict)
    slots: int = 0

    def cost(self, wanted: Mapping[str, SlotGroup]) -> int:
        """Return the slots that have to be added for groups."""
        slots = 0
        for name, group in wanted.items():
            known = self.groups.get(name)
            if known is None:
                slots += group.lower
            elif group.lower > known.lower:
                slots += group.lower - known.lower
        return slots

    def add(self, wanted: Mapping[str, SlotGroup]) -> None:
        self.slots += add_groups(self.groups, wanted.items())

    def shortage(self, wanted: Mapping[str, SlotGroup], total: int, unasked: int | None) -> Shortage:
        """Explain why groups do not fit into `total` slots."""
        own = sum(self.groups[name].lower for name in wanted if name in self.groups)
        cost = self.cost(wanted)
        awaited = unasked is None or self.slots + cost <= unasked
        return Shortage(total=total, needed=own + cost, ahead=self.slots - own, awaited=awaited)


def share_out(claims: Iterable[Claim], total: int, unasked: int | None = None) -> dict[str, Share]:
    """Give each query its share of the `total` slots; `claims` are in the order of their submission.

    `unasked` is the number of slots that can be had while no task waits for one, None for no such limit.
    """
    by_priority = sorted(claims, key=lambda claim: -claim.requirements.priority)
    begun = [claim for claim in by_priority if claim.standing != "waiting"]
    # At equal priority, running queries come before failed ones, since they cannot be stopped.
    begun.sort(key=lambda claim: (-claim.requirements.priority, claim.standing == "recovering"))
    waiting = (claim for claim in by_priority if claim.standing == "waiting")

    met, occupied = _Book(), _Book()
    short: dict[str, Shortage] = {}
    for claim in chain(begun, waiting):
        groups = claim.requirements.groups
        # A running query without its slots is not stopped, so one that has not begun finds them taken.
        book = occupied if claim.standing == "waiting" else met
        fits = book.slots + book.cost(groups) <= total or met.cost(groups) == 0
        if fits:
            met.add(groups)
        else:
            short[claim.query] = book.shortage(groups, total, unasked)
        if fits or claim.standing == "running":
            occupied.add(groups)
    # Running queries get what is left of their lower bounds before the rest is divided.
    set_aside = min(total - met.slots, occupied.slots - met.slots)
    return _divide(by_priority, met.groups, short, total, total - set_aside)


def _divide(
    claims: Iterable[Claim],
    groups: Mapping[str, SlotGroup],
    short: Mapping[str, Shortage],
    total: int,
    slots: int,
) -> dict[str, Share]:
    given = allocate(groups, slots)
    assert given is not None
    surplus = slots - sum(given.values())
    reserved = total - slots + sum(group.lower for group in groups.values())
    weights = sum(group.weight for group in groups.values())
    shares: dict[str, Share] = {}
    for claim in claims:
        shortage = short.get(claim.query)
        if shortage is not None:
            left = max(0, total - shortage.ahead)
            shares[claim.query] = Share(total=total, slots=left, shortage=shortage)
            continue
        shuffle = claim.requirements.shuffle
        group = shuffle.group
        own = claim.requirements.groups
        shares[claim.query] = Share(
            total=total,
            # Slots beyond its grant are about to go, or are there for others.
            slots=given[group] + (surplus if shuffle.granted is None else 0),
            complete=all(given[name] >= wanted.upper for name, wanted in own.items()),
            content=all(given[name] >= wanted.wanted for name, wanted in own.items()),
            reserved=reserved,
            weight=groups[group].weight,
            weights=weights,
        )
    return shares
