"""What a policy has last said of a query, as it can be looked at."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from spark_elastic.core import reasons
from spark_elastic.core.policies.autoscale.model import points
from spark_elastic.core.policies.limits import Granted
from spark_elastic.core.policies.outlook import Outlook
from spark_elastic.core.policies.view import Sample
from spark_elastic.core.turn import Number


def sentence(granted: Granted, before: int, numbers: Mapping[str, Number], *, advise_only: bool) -> str:
    """Say what is wanted for a query that had so many slots `before`, and why it is not granted all of it."""
    wish = granted.wish
    said = reasons.message(wish.reason, **numbers, before=before, after=wish.slots)
    if granted.reason is not None:
        trimmed: dict[str, Number] = {**numbers, "by": granted.by}
        said += " " + reasons.message(granted.reason, **trimmed, before=before, after=granted.slots)
    return reasons.advised(said, only=advise_only)


@frozen(kw_only=True)
class Plan:
    """What became of the last wish for one query, which had so many slots `before` it.

    With `advise_only` nothing does. `samples` are the micro-batches that are known, the newest last. One
    reads `most_rows` at most, None: all that there are, or what its user has said.
    """

    granted: Granted
    before: int
    advise_only: bool
    samples: tuple[Sample, ...]
    most_rows: int | None = None

    @property
    def outlook(self) -> Outlook | None:
        """What the policy goes by, None where that is not known yet."""
        return self.granted.wish.outlook

    @property
    def message(self) -> str:
        """Say what is wanted, and why."""
        return sentence(self.granted, self.before, self.granted.wish.told, advise_only=self.advise_only)

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """The micro-batches through which a line can be laid: rows for each busy slot, and duration (ms)."""
        return points(self.samples)
