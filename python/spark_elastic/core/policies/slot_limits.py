"""Limits for the slots of a query: those that policies state, within the bounds that are declared for it.

They limit slots, not partitions: no state is moved into them, and no start waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen
from attrs.validators import ge, optional


@frozen(kw_only=True)
class SlotLimits:
    """From `lower` up to `upper` slots, each 1 or more, None: no limit.

    `by` says who wants that, such as "the window morning". Raises ValueError unless 1 <= lower <= upper.
    """

    lower: int | None = field(default=None, validator=optional(ge(1)))
    upper: int | None = field(default=None, validator=optional(ge(1)))
    by: str

    def __attrs_post_init__(self) -> None:
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(f"lower limit {self.lower} is above upper limit {self.upper}")


@frozen(kw_only=True)
class Allowed:
    """From `lower` to `upper` slots, and who limits them further than the declared bounds, None: nobody."""

    lower: int
    upper: int
    lower_by: str | None = None
    upper_by: str | None = None


def allowed(lower: int, upper: int, limits: Iterable[SlotLimits]) -> Allowed:
    """Put limits within the declared bounds, 1 <= lower <= upper, and each within those before it."""
    lower_by = upper_by = None
    for limit in limits:
        if limit.lower is not None and limit.lower > lower and lower < upper:
            lower, lower_by = min(limit.lower, upper), limit.by
        if limit.upper is not None and limit.upper < upper and lower < upper:
            upper, upper_by = max(limit.upper, lower), limit.by
    return Allowed(lower=lower, upper=upper, lower_by=lower_by, upper_by=upper_by)


def shown_limits(lower: int, upper: int, limits: Iterable[SlotLimits]) -> str:
    """Say in words what limits make of the declared bounds, and who has stated them; "" if nothing."""
    may = allowed(lower, upper, limits)
    by = ", ".join(dict.fromkeys(name for name in (may.lower_by, may.upper_by) if name is not None))
    if not by:
        return ""
    if may.lower == may.upper:
        range_ = f"{may.lower}"
    elif may.upper_by is None:
        range_ = f"at least {may.lower}"
    elif may.lower_by is None:
        range_ = f"at most {may.upper}"
    else:
        range_ = f"{may.lower} to {may.upper}"
    return f"{range_}, by {by}"
