"""A picture of a run: the load, the lag of the queries, executors, partitions and rescales."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spark_elastic_lab.simulator.record import Steps
from spark_elastic_lab.simulator.simulation import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_IN = (9.0, 8.0)
_POINTS = 500
_NEEDED, _WANTED, _THERE, _LIMIT = "#999999", "#ff7f0e", "#1f77b4", "#d62728"
# The same run gives the same file. Text stays text, and a dollar sign in a query's name is one.
_STYLE: Any = {"svg.hashsalt": "simulator", "svg.fonttype": "none", "text.parse_math": False, "font.size": 11}

Point = tuple[float, float]


class NoMatplotlibError(Exception):
    """The library that draws the pictures is missing; the message says how to install it."""


def check_matplotlib() -> None:
    """Raise NoMatplotlibError if pictures cannot be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise NoMatplotlibError(
            "matplotlib, which draws the pictures, is not installed: "
            "type `pip install 'spark-elastic[pictures]'`"
        ) from error


def picture(result: Result) -> str:
    """Draw a run as SVG. Raises NoMatplotlibError."""
    check_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        written = io.StringIO()
        figure(result).savefig(
            written, format="svg", metadata={"Date": None, "Creator": None, "Title": result.policy}
        )
    return written.getvalue()


def figure(result: Result) -> Figure:
    """Draw a run: load, lag, executors and partitions, from top to bottom."""
    from matplotlib.figure import Figure

    seconds = result.scenario.end_ms / 1_000
    names = list(result.notes.queries)
    drawn = Figure(figsize=_SIZE_IN, layout="constrained")
    load, lag, executors, partitions = drawn.subplots(4, sharex=True)
    for place, name in enumerate(names):
        notes, colour = result.notes.queries[name], f"C{place}"
        _line(load, name, _sampled(result.loads[name].rate, seconds), color=colour)
        _line(lag, name, _thinned(_lag_points(result, name), seconds), color=colour)
        _steps(partitions, name, notes.partitions, seconds, color=colour)
    limit = result.scenario.max_lag_s
    _line(lag, f"objective, {limit:g} s", [(0, limit), (seconds, limit)], color=_LIMIT, linestyle="--")
    needed = Steps()
    for step, count in enumerate(result.demand.executors):
        needed.note(step * result.demand.step_s * 1_000, count)
    _steps(executors, "fewest that would do", needed, seconds, color=_NEEDED, linestyle="--")
    # The wider line below the narrower one, since both are often the same.
    _steps(executors, "there", result.notes.there, seconds, color=_THERE, linewidth=2.4)
    _steps(executors, "wanted", result.notes.wanted, seconds, color=_WANTED)
    moves = [move.at / 1_000 for query in result.notes.queries.values() for move in query.moves]
    if moves:
        marks = {"linestyle": "", "marker": "|", "markersize": 12, "color": _LIMIT}
        at_the_top = partitions.get_xaxis_transform()
        _line(partitions, "rescale", [(at, 0.95) for at in moves], transform=at_the_top, **marks)
    _label(load, "load (rows/s)")
    _label(lag, "lag (s)")
    _label(executors, "executors", whole=True)
    _label(partitions, "partitions", whole=True)
    ticks = _ticks(seconds)
    partitions.set_xlim(0, seconds)
    partitions.set_xticks(ticks, labels=[_moment(at) for at in ticks])
    partitions.set_xlabel("time (h:mm:ss)" if any(at % 60 for at in ticks) else "time (h:mm)")
    drawn.align_ylabels()
    drawn.suptitle(_title(result), fontsize="medium")
    return drawn


def _title(result: Result) -> str:
    found = result.metrics
    return (
        f"{result.policy}\n{found.executor_hours:.1f} executor-hours, {found.outside_percent:.2f} % of the "
        f"time more than {result.scenario.max_lag_s:g} s behind, {found.rescales} rescales, "
        f"seed {result.scenario.seed}"
    )


def _line(axes: Axes, name: str, points: Iterable[Point], **style: Any) -> None:
    xs, ys = zip(*points, strict=True)
    axes.plot(xs, ys, label=name, **{"linewidth": 1.2, **style})


def _steps(axes: Axes, name: str, steps: Steps, seconds: float, **style: Any) -> None:
    """Draw values that hold until the next one."""
    if steps.times:
        points = [(at / 1_000, value) for at, value in zip(steps.times, steps.values, strict=True)]
        _line(axes, name, [*points, (seconds, steps.values[-1])], drawstyle="steps-post", **style)


def _label(axes: Axes, label: str, *, whole: bool = False) -> None:
    """Name an axis and its lines; it begins at 0, and has whole numbers only if `whole`."""
    from matplotlib.ticker import MaxNLocator

    axes.set_ylabel(label)
    axes.set_ylim(0, max(1.0, axes.get_ylim()[1]) if whole else None)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=whole, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.grid(linewidth=0.5, alpha=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    names = [str(line.get_label()) for line in axes.lines]
    axes.legend(
        axes.lines, names, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small"
    )


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


def _thinned(points: Sequence[Point], seconds: float) -> list[Point]:
    """Keep the highest point of each time slice, so that peaks stay visible."""
    step = max(1e-9, seconds / _POINTS)
    highest: dict[int, Point] = {}
    for now, value in points:
        place = int(now / step)
        if place not in highest or value > highest[place][1]:
            highest[place] = (now, value)
    return list(highest.values())


def _ticks(seconds: float) -> list[int]:
    """Return the ticks of the time axis (s), at most about a dozen."""
    steps = (1, 5, 10, 60, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)
    step = next((step for step in steps if seconds / step <= 13), 7 * 86_400)
    return list(range(0, int(seconds) + 1, step))


def _moment(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02}" + (f":{rest:02}" if rest else "")
