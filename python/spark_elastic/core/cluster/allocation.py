"""How slots are divided between groups: lower bounds first, then targets, then the rest by weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_elastic.core.bounds.requirements import SlotGroup


def allocate(groups: Mapping[str, SlotGroup], slots: int) -> Mapping[str, int] | None:
    """Divide `slots` and return those of each group; None if the lower bounds do not fit.

    What is left above the lower bounds goes to groups with a target until all have theirs, and then to all:
    no group gets more than its upper bound.
    """
    given = {name: group.lower for name, group in groups.items()}
    left = slots - sum(given.values())
    if left < 0:
        return None
    # Each change of the slots divides them anew: whole numbers are as exact as fractions, and quick.
    weights = dict(zip(groups, _whole(group.weight for group in groups.values()), strict=True))
    targets = {name: group.target for name, group in groups.items() if group.target > group.lower}
    if targets:
        left = _raise(given, targets, weights, left)
    _raise(given, {name: group.upper for name, group in groups.items()}, weights, left)
    return given


def _raise(given: dict[str, int], tops: Mapping[str, int], weights: Mapping[str, int], left: int) -> int:
    """Divide the slots that are `left` by weight, no group up to more than its top; return what stays left.

    What a narrow group cannot use flows to the wider ones. Of the slots that are left by rounding down, those
    with the largest remainders get one each, of equal ones that of the largest weight, then the wider group,
    and then the later one. With equal weights that is Flink's rule.
    """
    widths = {name: top - given[name] for name, top in tops.items()}
    # Two widths by weight that are not equal are by then at least 1 apart.
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
    """Return whole numbers that are in the same ratio as the weights, exactly."""
    ratios = [weight.as_integer_ratio() for weight in weights]
    # Those of floats are all powers of two.
    denominator = max((below for _, below in ratios), default=1)
    return [above * (denominator // below) for above, below in ratios]
