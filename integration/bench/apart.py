"""The deviation of a simulation from the run that it simulates, as shares of the run's values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from attrs import frozen

from spark_elastic_lab.simulator.record import Notes, QueryNotes

LAG_WINDOW_S = 15
"""The window (s) over which lag is averaged: from one micro-batch to the next, it differs by chance."""

_SAMPLES_PER_S = 10


@frozen
class Span:
    """The compared seconds since the start of a run, without `until`."""

    since: int
    until: int

    @property
    def moments(self) -> list[int]:
        """Evenly spaced moments in it (ms)."""
        return list(range(self.since * 1_000, self.until * 1_000, 1_000 // _SAMPLES_PER_S))

    def has(self, moment: float) -> bool:
        """Return whether a moment (ms) is in it."""
        return self.since * 1_000 <= moment < self.until * 1_000


@frozen(kw_only=True)
class Course:
    """The course of a span of a run, or the mean of several.

    `executors` are those at each of its moments. `lag_s` has the mean over each `LAG_WINDOW_S` of the waiting
    time of the oldest uncommitted row. `rescales` counts the query's changes of its number of partitions,
    `requests` the requests for another number of executors.
    """

    executors: Sequence[float]
    lag_s: Sequence[float]
    rescales: float
    requests: float


def course(notes: Notes, query: str, span: Span) -> Course:
    """Return the course of a span of a run, with the lag and the rescales of one query."""
    asked = zip(notes.wanted.times[1:], pairwise(notes.wanted.values), strict=True)
    return Course(
        executors=[notes.there.at(moment) for moment in span.moments],
        lag_s=_mean_lags(notes.queries[query], span),
        rescales=sum(span.has(rescaled.at) for rescaled in notes.queries[query].rescales),
        requests=sum(span.has(at) and before != after for at, (before, after) in asked),
    )


def mean(courses: Sequence[Course]) -> Course:
    """Return the mean of courses of one span, at each moment; there must be at least one."""
    return Course(
        executors=[fmean(values) for values in zip(*(one.executors for one in courses), strict=True)],
        lag_s=[fmean(values) for values in zip(*(one.lag_s for one in courses), strict=True)],
        rescales=fmean(one.rescales for one in courses),
        requests=fmean(one.requests for one in courses),
    )


def apart(was: Course, would: Course) -> dict[str, float]:
    """Return the deviation of a course from the real one, as shares of the real values.

    For `executors` and `lag`, it is the integral of |real - simulated| divided by the integral of the real
    ones, which must not be 0. For `rescales`, it is |real - simulated| / real, with 1 in place of a real 0.
    """
    return {
        "executors": _area(was.executors, would.executors),
        "lag": _area(was.lag_s, would.lag_s),
        "rescales": abs(was.rescales - would.rescales) / max(1, was.rescales),
    }


def _mean_lags(notes: QueryNotes, span: Span) -> list[float]:
    """Return the mean lag (s) of each window of a span; an incomplete last window is left out."""
    each = LAG_WINDOW_S * _SAMPLES_PER_S
    lags = _lags(notes, span)
    return [fmean(lags[end - each : end]) for end in range(each, len(lags) + 1, each)]


def _lags(notes: QueryNotes, span: Span) -> list[float]:
    """Return the lag (s) at each moment of a span."""
    lags, commits = [], iter(notes.commits)
    commit = next(commits, None)
    for moment in span.moments:
        while commit is not None and commit.at <= moment:
            commit = next(commits, None)
        # The oldest row stays the same up to a commit; after the last commit, no row is known to wait.
        lags.append(0.0 if commit is None else max(0.0, moment - commit.since) / 1_000)
    return lags


def _area(was: Sequence[float], would: Sequence[float]) -> float:
    return sum(abs(one - other) for one, other in zip(was, would, strict=True)) / sum(was)
