"""The fewest executors that could meet the objective if the load were known: the reference for the metrics.

In each time step, every query must process within one trigger interval what arrives during one. Alone, a
query needs the slots that this takes. Together, queries need the slots that their total work takes, since a
query that waits for its trigger leaves its slots to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from attrs import frozen

from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.scenario import Scenario

STEP_S = 30
"""Length of a time step (s); the backlog absorbs shorter peaks."""

_MOST_SLOTS = 1_024
_NEARLY = 1.05
_HEADROOM = 1.1


@frozen
class Demand:
    """The fewest executors and slots for each step of `step_s` seconds from the start."""

    executors: tuple[int, ...]
    slots: tuple[int, ...]
    step_s: int = STEP_S

    def most(self, begin_ms: float, end_ms: float) -> int:
        """Return the most executors needed between two moments; after the end, the last step counts."""
        last = len(self.executors) - 1
        first = min(last, max(0, int(begin_ms / 1_000 / self.step_s)))
        until = min(last, max(0, int(end_ms / 1_000 / self.step_s)))
        return max(self.executors[first : until + 1])


def demand(scenario: Scenario, loads: Mapping[str, Load]) -> Demand:
    """Compute the demand of a scenario, limited to its quota."""
    shapes = [partial(_needs, query, scenario.max_lag_s) for query in scenario.queries]
    curves = [loads[query.name] for query in scenario.queries]
    known: list[dict[int, tuple[int, float]]] = [{} for _ in shapes]
    slots = []
    for begin in range(0, scenario.seconds, STEP_S):
        alone, together = 1, 0.0
        for needs, load, seen in zip(shapes, curves, known, strict=True):
            rate = round(load.mean(begin, begin + STEP_S))
            if rate not in seen:
                seen[rate] = needs(rate)
            fewest, work = seen[rate]
            alone, together = max(alone, fewest), together + work
        slots.append(max(alone, -(-together // 1)))
    cores, quota = scenario.cluster.cores, scenario.cluster.quota
    executors = tuple(min(quota, -(-int(count) // cores)) for count in slots)
    return Demand(executors=executors, slots=tuple(int(count) for count in slots))


def deadline_ms(query: QuerySpec, max_lag_s: float) -> float:
    """Return the time (ms) that a micro-batch may usually take: its interval, or the rest of the objective.

    The result leaves headroom: a batch that is slower by two standard deviations is still in time, and the
    backlog after a pause can be processed.
    """
    slow = max(_HEADROOM, 1 + 2 * query.cost.jitter)
    if query.trigger_s == 0:
        return max_lag_s * 500 / slow
    left = max_lag_s - query.trigger_s
    return 1_000 * (min(query.trigger_s, left) if left > 0 else query.trigger_s) / slow


def fewest_slots(query: QuerySpec, rate: float, max_lag_s: float) -> int:
    """Return the fewest slots with which a query alone keeps up with a rate (rows/s).

    If no number of slots suffices, return the number beyond which more slots do not help.
    """
    rows, deadline = _rows(query, rate, max_lag_s), deadline_ms(query, max_lag_s)
    # The target is never below what more slots cannot shorten, such as one hot partition.
    best = query.batch_ms(rows, _MOST_SLOTS, _MOST_SLOTS)
    best = min(best, query.batch_ms(rows, query.source.partitions, _MOST_SLOTS))
    enough = deadline if best <= deadline else best * _NEARLY
    low, high = 1, _MOST_SLOTS
    while low < high:
        middle = (low + high) // 2
        if query.batch_ms(rows, middle, middle) <= enough:
            high = middle
        else:
            low = middle + 1
    return low


def _needs(query: QuerySpec, max_lag_s: float, rate: int) -> tuple[int, float]:
    """Return the slots that a query needs alone, and the slots that its tasks keep busy."""
    alone = fewest_slots(query, rate, max_lag_s)
    rows, cost = _rows(query, rate, max_lag_s), query.cost
    tasks = query.source.partitions + (alone if cost.has_shuffle else 0)
    work = cost.task_ms * tasks + rows * (cost.read_us + cost.work_us) / 1_000
    room = deadline_ms(query, max_lag_s) - cost.fixed_ms
    return alone, min(alone, work / room) if room > 0 and rows else 0.0


def _rows(query: QuerySpec, rate: float, max_lag_s: float) -> int:
    return round(rate * (query.trigger_s or deadline_ms(query, max_lag_s) / 1_000))
