"""What a policy wants: slots for queries, with the reason, and limits for them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen
from attrs.validators import ge, optional

from spark_elastic.core.policies.outlook import Outlook
from spark_elastic.core.policies.slot_limits import SlotLimits
from spark_elastic.core.turn import Number


@frozen(kw_only=True)
class QueryWish:
    """So many `slots` (1 or more) for one query.

    `reason` is a key of ``core/reasons.py`` whose sentence the `numbers` fill, with those of the `outlook`:
    what the policy goes by, None if it does not say. `until` is when the policy is to be asked again at the
    latest (epoch ms), None: when something has happened. `unsmoothed` are the slots for which the metrics of
    now alone call, None: as many; the view shows them later as `wanted`, with the `rows_per_ms` that they
    were for, None: not for a rate. `most_rows` are those that one of its micro-batches should read at most,
    None: all that there are. Raises ValueError for fewer than 1 slot or row.
    """

    slots: int = field(validator=ge(1))
    reason: str
    numbers: Mapping[str, Number] = field(factory=dict)
    until: int | None = None
    unsmoothed: int | None = field(default=None, validator=optional(ge(1)))
    rows_per_ms: float | None = None
    most_rows: int | None = field(default=None, validator=optional(ge(1)))
    outlook: Outlook | None = None

    @property
    def told(self) -> dict[str, Number]:
        """All numbers that the decision is told with."""
        return {**self.numbers} if self.outlook is None else {**self.outlook.numbers(), **self.numbers}


@frozen(kw_only=True)
class BatchWish:
    """So many `executors` for batch stages, beside those of the queries (0 or more).

    `reason` is a key of ``core/reasons.py`` whose sentence the `numbers` fill. `unsmoothed` are those for
    which the metrics of now alone call, None: as many. Raises ValueError for fewer than 0 executors.
    """

    executors: int = field(validator=ge(0))
    reason: str
    numbers: Mapping[str, Number] = field(factory=dict)
    unsmoothed: int | None = field(default=None, validator=optional(ge(0)))


@frozen(kw_only=True)
class Wish:
    """What a policy wants for queries, by id.

    Of one that is not in `queries` it wants no number of slots: then the one that a policy before it wanted
    counts, or `limits` alone, or else its declared bounds. `limits` are what a query may have, in the order
    in which they count. `executors` is the least number of executors in all, None: as many as the slots of
    the queries need; `executors_by` says who wants them, such as "the window morning". `until` is when the
    policy is to be asked again at the latest, whatever the queries do (epoch ms), None: when something has
    happened. `batch` are those that batch stages should have beside them, None: the policy does not look at
    any.
    """

    queries: Mapping[str, QueryWish] = field(factory=dict)
    limits: Mapping[str, tuple[SlotLimits, ...]] = field(factory=dict)
    executors: int | None = field(default=None, validator=optional(ge(0)))
    executors_by: str = "a policy"
    until: int | None = None
    batch: BatchWish | None = None
