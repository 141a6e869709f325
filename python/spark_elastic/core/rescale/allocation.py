"""How the slots are shared out between the vertices of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_elastic.core.bounds.requirements import Vertex, slot_groups


def allocate(vertices: Sequence[Vertex], slots: int) -> Mapping[str, int] | None:
    """Share `slots` out and return the parallelism of each vertex; None if the lower bounds do not fit.

    The group with the narrowest bounds is served first, so that what it cannot use flows to the wider ones.
    """
    if len(vertices) == 1:  # so it is for each query, each time that it is looked at
        (vertex,) = vertices
        bounds = vertex.bounds
        return {vertex.id: min(bounds.upper, slots)} if bounds.lower <= slots else None
    groups = slot_groups(vertices)
    reserved = sum(lower for lower, _ in groups.values())
    if reserved > slots:
        return None
    given: dict[str, int] = {}
    left = slots
    waiting = sorted(groups.items(), key=lambda item: item[1][1] - item[1][0])
    for served, (group, (lower, upper)) in enumerate(waiting):
        share = (left - reserved) // (len(waiting) - served)
        given[group] = lower + min(upper - lower, share)
        left -= given[group]
        reserved -= lower
    return {vertex.id: min(vertex.bounds.upper, given[vertex.group]) for vertex in vertices}
