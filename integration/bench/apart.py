"""How far a simulation is from the run that it simulates, as shares of what the run was."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from attrs import frozen

from spark_elastic_lab.simulator.record import Notes, QueryNotes

LAG_WINDOW_S = 15
"""Over so many seconds lag is averaged: by chance alone it differs from one micro-batch to the next."""

_SAMPLES_PER_S = 10


@frozen
class Span:
    """The seconds from the begin of a run that are looked at, `until` left out."""

    since: int
    until: int

    @property
    def moments(self) -> list[int]:
        """Moments in it (ms), at the same distance from each other."""
        return list(range(self.since * 1_000, self.until * 1_000, 1_000 // _SAMPLES_PER_S))

    def has(self, moment: float) -> bool:
        """Whether a moment (ms) is in it."""
        return self.since * 1_000 <= moment < self.until * 1_000


@frozen(kw_only=True)
class Course:
    """What a span of a run was, or of several in the mean.

    `executors` are those at each of its moments, `lag_s` is the mean of each `LAG_WINDOW_S` of how long the
    oldest row waits that is not through. `rescales` counts how often the query went to another number of
    partitions, `requests` how often another number of executors was asked for.
    """

    executors: Sequence[float]
    lag_s: Sequence[float]
    rescales: float
    requests: float


def course(notes: Notes, query: str, span: Span) -> Course:
    """Return what a span of a run was, with the lag and the rescales of one query."""
    asked = zip(notes.wanted.times[1:], pairwise(notes.wanted.values), strict=True)
    return Course(
        executors=[notes.there.at(moment) for moment in span.moments],
        lag_s=_mean_lags(notes.queries[query], span),
        rescales=sum(span.has(rescaled.at) for rescaled in notes.queries[query].rescales),
        requests=sum(span.has(at) and before != after for at, (before, after) in asked),
    )


def mean(courses: Sequence[Course]) -> Course:
    """Return the mean of courses of one span, at each moment; there has to be one."""
    return Course(
        executors=[fmean(values) for values in zip(*(one.executors for one in courses), strict=True)],
        lag_s=[fmean(values) for values in zip(*(one.lag_s for one in courses), strict=True)],
        rescales=fmean(one.rescales for one in courses),
        requests=fmean(one.requests for one in courses),
    )


def apart(was: Course, would: Course) -> dict[str, float]:
    """Return how far a course is from what was, each as a share of that.

    Of `executors` and `lag` it is the integral of |real - simulated| by the integral of the real ones, which
    must not be 0. Of `rescales` it is |real - simulated| by real, by 1 where that is 0.
    """
    return {
        "executors": _area(was.executors, would.executors),
        "lag": _area(was.lag_s, would.lag_s),
        "rescales": abs(was.rescales - would.rescales) / max(1, was.rescales),
    }


def _mean_lags(notes: QueryNotes, span: Span) -> list[float]:
    """Return the mean lag (s) of each window of a span; what is left of it at its end is no window."""
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
        # Up to a commit the oldest row is the same; after the last one nothing is known to wait.
        lags.append(0.0 if commit is None else max(0.0, moment - commit.since) / 1_000)
    return lags


def _area(was: Sequence[float], would: Sequence[float]) -> float:
    return sum(abs(one - other) for one, other in zip(was, would, strict=True)) / sum(was)
