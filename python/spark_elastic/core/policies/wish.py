"""What a policy wants: slots for queries, with the reason; and what came of it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen
from attrs.validators import ge, optional

from spark_elastic.core.turn import Number


@frozen(kw_only=True)
class QueryWish:
    """So many `slots` (1 or more) for one query.

    `reason` is a key of ``core/reasons.py`` whose sentence the `numbers` fill. `until` is when the policy is
    to be asked again at the latest (epoch ms), None: when something has happened. `unsmoothed` are the slots
    for which the figures of now alone call, None: as many; the view shows them later as `wanted`, with the
    `rows_per_ms` that they were for, None: not for a rate. Raises ValueError for fewer than 1 slot.
    """

    slots: int = field(validator=ge(1))
    reason: str
    numbers: Mapping[str, Number] = field(factory=dict)
    until: int | None = None
    unsmoothed: int | None = field(default=None, validator=optional(ge(1)))
    rows_per_ms: float | None = None


@frozen(kw_only=True)
class Wish:
    """What a policy wants for queries, by id.

    Of one that is not there it wants nothing: then its declared bounds hold alone.
    `executors` is the least number of executors in all, None: as many as the slots of the queries need.
    """

    queries: Mapping[str, QueryWish] = field(factory=dict)
    executors: int | None = field(default=None, validator=optional(ge(0)))
