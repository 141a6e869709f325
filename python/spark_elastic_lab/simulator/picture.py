"""A picture of a run: the load, the lag of the queries, executors, and rescales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from attrs import frozen

from spark_elastic_lab.simulator.record import Steps
from spark_elastic_lab.simulator.simulation import Result

_WIDTH, _LEFT, _RIGHT, _TOP = 960, 70, 20, 72
_PANEL, _GAP = 130, 34
_POINTS = 800
_COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22")
_NEEDED, _WANTED, _THERE, _LIMIT = "#999999", "#ff7f0e", "#1f77b4", "#d62728"

Point = tuple[float, float]


@frozen
class Series:
    """A line: `points` are (s, value) pairs; if it is `stepped`, a value holds until the next point."""

    name: str
    colour: str
    points: Sequence[Point]
    stepped: bool = False
    dashed: bool = False


@frozen
class Panel:
    """A part of the picture with its own axis; `marks` are moments (s)."""

    title: str
    series: Sequence[Series]
    marks: Sequence[float] = ()


def picture(result: Result) -> str:
    """Draw a run as SVG."""
    seconds = result.scenario.end_ms / 1_000
    panels = _panels(result, seconds)
    found = result.metrics
    subtitle = (
        f"{found.executor_hours:.1f} executor-hours, {found.outside_percent:.2f} % of the time more than "
        f"{result.scenario.max_lag_s:g} s behind, {found.rescales} rescales, seed {result.scenario.seed}"
    )
    drawn = [_draw(panel, seconds, _TOP + place * (_PANEL + _GAP)) for place, panel in enumerate(panels)]
    template = Template(files(__package__).joinpath("picture.svg").read_text(encoding="utf-8"))
    return template.substitute(
        width=_WIDTH,
        height=_TOP + len(panels) * (_PANEL + _GAP) + 20,
        left=_LEFT,
        title=escape(result.policy),
        subtitle=escape(subtitle),
        panels="\n".join(drawn),
    )


def _panels(result: Result, seconds: float) -> list[Panel]:
    notes, demand = result.notes, result.demand
    names = list(notes.queries)
    colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}
    loads = [Series(name, colours[name], _sampled(result.loads[name].rate, seconds)) for name in names]
    lags = [Series(name, colours[name], _thinned(_lag_points(result, name), seconds)) for name in names]
    limit = result.scenario.max_lag_s
    lags.append(Series("objective", _LIMIT, [(0, limit), (seconds, limit)], dashed=True))
    needed = Steps()
    for step, count in enumerate(demand.executors):
        needed.note(step * demand.step_s * 1_000, count)
    executors = [
        Series("fewest that would do", _NEEDED, _stepped(needed, seconds), stepped=True, dashed=True),
        Series("wanted", _WANTED, _stepped(notes.wanted, seconds), stepped=True),
        Series("there", _THERE, _stepped(notes.there, seconds), stepped=True),
    ]
    partitions = [
        Series(name, colours[name], _stepped(notes.queries[name].partitions, seconds), stepped=True)
        for name in names
    ]
    moved = [one.at / 1_000 for query in notes.queries.values() for one in query.moves]
    return [
        Panel("rows/s that arrive", loads),
        Panel("lag (s)", lags),
        Panel("executors", executors),
        Panel("partitions, and rescales", partitions, moved),
    ]


def _lag_points(result: Result, name: str) -> list[Point]:
    """Return how far (s) a query was behind before and after each commit."""
    points: list[Point] = [(0.0, 0.0)]
    for commit in result.notes.queries[name].commits:
        now = commit.at / 1_000
        points += [(now, max(0.0, now - since / 1_000)) for since in (commit.since, commit.then)]
    return points


def _sampled(value: Callable[[float], float], seconds: float) -> list[Point]:
    step = max(1.0, seconds / _POINTS)
    return [(place * step, value(place * step)) for place in range(int(seconds / step))]


def _thinned(points: list[Point], seconds: float) -> list[Point]:
    """Keep the highest point of each time slice, so that peaks stay visible."""
    step = max(1e-9, seconds / _POINTS)
    highest: dict[int, Point] = {}
    for now, value in points:
        place = int(now / step)
        if place not in highest or value > highest[place][1]:
            highest[place] = (now, value)
    return list(highest.values())


def _stepped(steps: Steps, seconds: float) -> list[Point]:
    points = [(at / 1_000, float(value)) for at, value in zip(steps.times, steps.values, strict=True)]
    return [*points, (seconds, points[-1][1])] if points else []


def _draw(panel: Panel, seconds: float, top: float) -> str:
    values = [value for series in panel.series for _, value in series.points]
    most = _round_up(max(values, default=0.0))
    across, bottom = _WIDTH - _LEFT - _RIGHT, top + _PANEL

    def x(now: float) -> float:
        return round(_LEFT + across * now / seconds, 1)

    def y(value: float) -> float:
        return round(bottom - _PANEL * value / most, 1)

    parts = [f'<text x="{_LEFT}" y="{top - 6}">{escape(panel.title)}</text>']
    for share in (0.0, 0.5, 1.0):
        level = y(most * share)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{level}" y2="{level}"/>')
        parts.append(
            f'<text class="small" x="{_LEFT - 6}" y="{level + 3}" text-anchor="end">{most * share:g}</text>'
        )
    for now in _ticks(seconds):
        parts.append(f'<line class="grid" x1="{x(now)}" x2="{x(now)}" y1="{top}" y2="{bottom}"/>')
        parts.append(
            f'<text class="small" x="{x(now)}" y="{bottom + 14}" text-anchor="middle">{_moment(now)}</text>'
        )
    for now in panel.marks:
        parts.append(f'<line class="mark" x1="{x(now)}" x2="{x(now)}" y1="{top}" y2="{top + 8}"/>')
    parts += [_line(series, x, y) for series in panel.series]
    place = float(_WIDTH - _RIGHT)
    for series in reversed(panel.series):
        parts.append(
            f'<text class="small" x="{place}" y="{top - 6}" text-anchor="end" style="fill: {series.colour}">'
            f"{escape(series.name)}</text>"
        )
        place -= 6.2 * len(series.name) + 10
    return "\n".join(parts)


def _line(series: Series, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    path = ""
    for now, value in series.points:
        if not path:
            path = f"M{x(now)} {y(value)}"
        else:
            path += f"H{x(now)}V{y(value)}" if series.stepped else f"L{x(now)} {y(value)}"
    dash = ' stroke-dasharray="5 3"' if series.dashed else ""
    return f'<path class="line" stroke="{series.colour}"{dash} d="{path}"/>'


def _round_up(value: float) -> float:
    """Return the upper end of an axis: 1, 2, 4, 5 or 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 4, 5, 10) if value <= power * step * (1 + 1e-9))


def _ticks(seconds: float) -> list[float]:
    """Return the ticks of the time axis (s), at most about a dozen."""
    steps = (1, 5, 10, 60, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)
    step = next((step for step in steps if seconds / step <= 13), 7 * 86_400)
    return [float(now) for now in range(0, int(seconds) + 1, step)]


def _moment(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}" + (f":{rest:02}" if rest else "")
