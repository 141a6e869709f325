"""Pictures as SVG: points and steps over time, in as little text as they need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from attrs import frozen

from spark_elastic_lab.simulator.record import Steps

_WIDTH, _HEIGHT = 720, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 10, 10, 24
_MOST_POINTS = 800
_TICKS = (1, 2, 5, 10)

Point = tuple[float, float]


@frozen(kw_only=True)
class Curve:
    """A named curve through points (s, value); `kind` is its look: line, steps, dots or limit."""

    name: str
    points: Sequence[Point]
    colour: str
    kind: str = "line"


def steps(name: str, noted: Steps, end_ms: float, colour: str) -> Curve:
    """Return the curve of a number that holds until the next one is noted."""
    points: list[Point] = []
    ends = [*noted.times[1:], end_ms]
    for since, until, value in zip(noted.times, ends, noted.values, strict=True):
        points += [(since / 1_000, value), (min(until, end_ms) / 1_000, value)]
    return Curve(name=name, points=points, colour=colour, kind="steps")


def chart(title: str, unit: str, curves: Iterable[Curve], seconds: float) -> str:
    """Draw curves over `seconds` as one SVG."""
    drawn = [curve for curve in curves if curve.points]
    most = max((value for curve in drawn for _, value in curve.points), default=0) or 1
    top = _rounded(most)
    seconds = max(seconds, 1e-9)
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(point: Point) -> str:
        x = _LEFT + wide * min(1.0, max(0.0, point[0] / seconds))
        y = _TOP + high * (1 - point[1] / top)
        return f"{x:.1f},{y:.1f}"

    lines = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(title)}</title>",
        *_axes(top, unit, seconds, wide, high),
        *(part for curve in drawn for part in _curve(curve, place)),
        "</svg>",
    ]
    names = "".join(
        f'<span><i style="background:{curve.colour}"></i>{escape(curve.name)}</span>' for curve in drawn
    )
    return f"<figure><figcaption>{escape(title)}<small>{names}</small></figcaption>{''.join(lines)}</figure>"


def _curve(curve: Curve, place: Callable[[Point], str]) -> Iterator[str]:
    points = [place(point) for point in _thinned(curve.points)]
    if curve.kind == "dots":
        for at in points:
            x, _, y = at.partition(",")
            yield f'<circle cx="{x}" cy="{y}" r="1.6" fill="{curve.colour}"/>'
        return
    dashes = ' stroke-dasharray="5 4"' if curve.kind == "limit" else ""
    look = f'fill="none" stroke="{curve.colour}" stroke-width="1.6"{dashes}'
    yield f'<polyline {look} points="{" ".join(points)}"/>'


def _thinned(points: Sequence[Point]) -> Iterator[Point]:
    """Leave out points of a long curve, but of each stretch keep the highest."""
    width = -(-len(points) // _MOST_POINTS)
    for begin in range(0, len(points), width or 1):
        yield max(points[begin : begin + width], key=lambda point: point[1])


def _axes(top: float, unit: str, seconds: float, wide: float, high: float) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        y = _TOP + high * (1 - share)
        yield f'<line x1="{_LEFT}" x2="{_LEFT + wide}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        label = f"{top * share:,.3g}{f' {unit}' if unit and share else ''}"
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>'
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        anchor = "end" if share == 1 else "middle"
        at = seconds * share
        text = f"{at / 3_600:.1f} h" if seconds >= 7_200 else f"{at / 60:.1f} min"
        yield f'<text x="{_LEFT + wide * share:.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{text}</text>'


def _rounded(most: float) -> float:
    """Return the next round number that is not below `most`."""
    power = 10.0 ** (len(f"{int(most)}") - 1) if most >= 1 else 0.1
    while power > most:
        power /= 10
    return next((tick * power for tick in _TICKS if tick * power >= most), 10 * power)
