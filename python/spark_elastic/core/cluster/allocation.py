"""How slots are divided between groups: each its lower bound first, then the rest by weight."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from spark_elastic.core.bounds.requirements import SlotGroup


def allocate(groups: Mapping[str, SlotGroup], slots: int) -> Mapping[str, int] | None:
    """Divide `slots` and return those of each group; None if the lower bounds do not fit.

    What is left above the lower bounds is divided by weight, and no group gets more than its upper bound:
    what a narrow one cannot use flows to the wider ones. Of the slots that are left by rounding down, those
    with the largest remainders get one each, of equal ones the wider group, and then the later one. With
    equal weights that is Flink's rule.
    """
    given = {name: group.lower for name, group in groups.items()}
    left = slots - sum(given.values())
    if left < 0:
        return None
    weights = {name: Fraction(group.weight) for name, group in groups.items()}
    waiting = sorted(groups, key=lambda name: groups[name].width / weights[name])
    total = sum(weights.values())
    served = 0
    for name in waiting:
        if left * weights[name] < groups[name].width * total:
            break
        given[name] = groups[name].upper
        left -= groups[name].width
        total -= weights[name]
        served += 1
    shares = [(name, left * weights[name] / total) for name in waiting[served:]]
    for name, share in shares:
        given[name] += int(share)
    left -= sum(int(share) for _, share in shares)
    ranked = sorted(enumerate(shares), key=lambda ranked: (ranked[1][1] % 1, ranked[0]), reverse=True)
    for _, (name, _) in ranked[:left]:
        given[name] += 1
    return given
