"""Why a stage gets what it gets: the record that comes with each answer."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from spark_elastic.core.actions import DecisionKind
from spark_elastic.core.batch.reasons import STAGE_REASONS
from spark_elastic.core.sentences import fill


@frozen(kw_only=True)
class StageRecord:
    """A decision about a stage: a reason of the catalogue, its sentence, and what was asked and compared.

    `before` is what Spark would do, `after` what is to be done, None: as Spark does.
    """

    kind: DecisionKind
    reason: str
    message: str
    before: int | None
    after: int | None
    numbers: Mapping[str, float | int | str] = field(factory=dict)


def record(
    reason: str, *, before: int | None = None, after: int | None = None, **numbers: float | int | str
) -> StageRecord:
    """Make a record. Raises KeyError for an unknown reason, or if its sentence lacks a number."""
    entry = STAGE_REASONS[reason]
    return StageRecord(
        kind=entry.kind,
        reason=reason,
        message=fill(entry.sentence, before=before, after=after, **numbers),
        before=before,
        after=after,
        numbers=numbers,
    )
