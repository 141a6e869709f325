"""How slots are divided between groups: each its lower bound first, then the rest by weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_elastic.core.bounds.requirements import SlotGroup


def allocate(groups: Mapping[str, SlotGroup], slots: int) -> Mapping[str, int] | None:
    """Divide `slots` and return those of each group; None if the lower bounds do not fit.

    What is left above the lower bounds is divided by weight, and no group gets more than its upper bound:
    what a narrow one cannot use flows to the wider ones. Of the slots that are left by rounding down, those
    with the largest remainders get one each, of equal ones that of the largest weight, then the wider group,
    and then the later one. With equal weights that is Flink's rule.
    """
    given = {name: group.lower for name, group in groups.items()}
    left = slots - sum(given.values())
    if left < 0:
        return None
    # Each change of the slots divides them anew: whole numbers are as exact as fractions, and quick.
    weights = dict(zip(groups, _whole(group.weight for group in groups.values()), strict=True))
    # Two widths by weight that are not equal are by then at least 1 apart.
    scale = max(weights.values(), default=1) ** 2
    waiting = sorted(groups, key=lambda name: groups[name].width * scale // weights[name])
    total = sum(weights.values())
    served = 0
    for name in waiting:
        if left * weights[name] < groups[name].width * total:
            break
        given[name] = groups[name].upper
        left -= groups[name].width
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
    return given


def _whole(weights: Iterable[float]) -> list[int]:
    """Return whole numbers that are in the same ratio as the weights, exactly."""
    ratios = [weight.as_integer_ratio() for weight in weights]
    # Those of floats are all powers of two.
    denominator = max((below for _, below in ratios), default=1)
    return [above * (denominator // below) for above, below in ratios]
