"""One partition more or fewer than now, as bounds: the rule of `rescale --up` and `--down`.

The tab has the same one for + and − (`step.js`); a golden file holds both to it.
"""

from __future__ import annotations

from spark_elastic.client.source import Json


def stepped(bounds: Json, now: int, step: int, most: int) -> Json | None:
    """Return the bounds of a vertex that has or is about to have `now` partitions, moved by `step` (1, -1).

    It is an order, whatever it is worth: the bound behind it is moved there, the other one only where it
    is in the way. None if there can be no such count: the fewest are 1, the most are `most`.
    """
    lower, upper = bounds["lowerBound"], bounds["upperBound"]
    # New bounds may be waiting for the end of a cooldown.
    to = max(lower, min(upper, now)) + step
    if not 1 <= to <= most:
        return None
    if step > 0:
        return {"lowerBound": to, "upperBound": max(upper, to)}
    return {"lowerBound": min(lower, to), "upperBound": to}
