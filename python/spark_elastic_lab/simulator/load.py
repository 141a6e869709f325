"""A load: the rows that have arrived by any moment."""

from __future__ import annotations

import csv
import difflib
import inspect
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from random import Random

from attrs import field, frozen


def _checked(rates: Iterable[float]) -> tuple[float, ...]:
    rates = tuple(rates)
    if not rates:
        raise ValueError("a load without a second: give it at least one rate")
    for second, rate in enumerate(rates):
        if not (math.isfinite(rate) and rate >= 0):
            raise ValueError(f"{rate} rows/s in second {second}: a rate is a number from 0 up")
    return rates


@frozen
class Load:
    """A load in rows per second: `rates` has one rate for each second, from second 0.

    After the last second nothing arrives. Raises ValueError if there is no rate, or one is negative or not a
    finite number.
    """

    rates: tuple[float, ...] = field(converter=_checked, repr=False)
    # The number of rows that have arrived by the start of each second; derived.
    _until: tuple[float, ...] = field(init=False, repr=False, eq=False)

    @_until.default
    def _sum(self) -> tuple[float, ...]:
        return tuple(accumulate(self.rates, initial=0.0))

    @property
    def total(self) -> float:
        """The total number of rows."""
        return self._until[-1]

    def rate(self, second: float) -> float:
        """Return the rate (rows/s) at a moment."""
        return self.rates[int(second)] if 0 <= second < len(self.rates) else 0.0

    def arrived(self, second: float) -> float:
        """Return the rows that have arrived by a moment (s), with fractions of a row."""
        if second <= 0:
            return 0.0
        whole = int(second)
        if whole >= len(self.rates):
            return self.total
        return self._until[whole] + (second - whole) * self.rates[whole]

    def mean(self, begin: float, end: float) -> float:
        """Return the mean rate (rows/s) between two moments (s); `begin` is before `end`."""
        return (self.arrived(end) - self.arrived(begin)) / (end - begin)

    def when(self, rows: float) -> float:
        """Return the moment (s) when `rows` rows have arrived, or infinity if they never do."""
        if rows <= 0:
            return 0.0
        second = bisect_left(self._until, rows) - 1
        if second >= len(self.rates):
            return math.inf
        return second + (rows - self._until[second]) / self.rates[second]


# The shapes of loads by name, each a function of its length in seconds, a random generator and parameters.
# The formulas of `cosine`, `random-walk`, `increase`, `decrease` and `convergence`, with their values, come
# from published comparisons of autoscalers for streams (delftdata/espa-autoscaling), in which a run takes
# 140 minutes. If a formula works in minutes, its rate holds for that minute. Rates are rows/s, times are
# minutes unless a name says otherwise; no rate is below 0.


MINUTE = 60
DAY = 24 * 60 * MINUTE

Rates = list[float]
Shape = Callable[..., Rates]


def constant(seconds: int, chance: Random, *, rate: float = 1_000) -> Rates:
    """Keep the same rate."""
    return [rate] * seconds


def cosine(
    seconds: int, chance: Random, *,
    mean: float = 150_000, amplitude: float = 100_000, period: float = 60, noise: float = 10_000,
    spikes: float = 0,
) -> Rates:  # fmt: skip
    """Follow a cosine; with probability `spikes` a minute, the next 1 to 3 minutes lie far off it."""
    spike, left = 0.0, 0
    rates = []
    for minute in range(_minutes(seconds)):
        if left == 0 and chance.random() < spikes:
            spike = chance.choice((-1, 1)) * chance.uniform(amplitude / 2, amplitude)
            left = chance.randint(1, 3)
        wave = mean + amplitude * math.cos(2 * math.pi * minute / period) + chance.uniform(-noise, noise)
        rates.append(max(0.0, wave + (spike if left else 0.0)))
        left = max(0, left - 1)
    return _by_minute(rates, seconds)


def random_walk(seconds: int, chance: Random, *, start: float = 150_000, step: float = 10_000) -> Rates:
    """Change each minute by at most `step`, up or down."""
    return _walk(seconds, chance, start, step, step)


def increase(seconds: int, chance: Random, *, start: float = 2_000, most: float = 240_000) -> Rates:
    """Rise more than fall: change by -`most`/30 to `most`/22 a minute."""
    return _walk(seconds, chance, start, most / 30, most / 22)


def decrease(seconds: int, chance: Random, *, end: float = 2_000, most: float = 240_000) -> Rates:
    """Fall more than rise, from `most` + `end`: change by -`most`/21 to `most`/28 a minute."""
    return _walk(seconds, chance, most + end, most / 21, most / 28)


def convergence(seconds: int, chance: Random, *, step: float = 1_000_000, noise: float = 100_000) -> Rates:
    """Step through levels: 0, one step, two steps and one step, for 1/7, 2/7, 2/7 and 2/7 of the run."""
    levels = (0, 1, 1, 2, 2, 1, 1)
    minutes = _minutes(seconds)
    rates = []
    for minute in range(minutes):
        level = levels[minute * len(levels) // minutes] * step
        rates.append(max(0.0, level + chance.uniform(-noise, noise)) if level else 0.0)
    return _by_minute(rates, seconds)


def ramp(seconds: int, chance: Random, *, start: float = 1_000, slope: float = 100) -> Rates:
    """Start at `start` and change by `slope` each minute."""
    return [max(0.0, start + slope * second / MINUTE) for second in range(seconds)]


def step(
    seconds: int, chance: Random, *, before: float = 1_000, after: float = 4_000, at: float = 30
) -> Rates:
    """Switch from one rate to another at a moment."""
    return [before if second < at * MINUTE else after for second in range(seconds)]


def square(
    seconds: int, chance: Random, *,
    low: float = 0, high: float = 4_000, period: float = 20, share: float = 0.5,
) -> Rates:  # fmt: skip
    """Alternate: `high` for a `share` of each period, then `low`."""
    length = period * MINUTE
    return [high if second % length < share * length else low for second in range(seconds)]


def spikes(
    seconds: int, chance: Random, *,
    base: float = 1_000, height: float = 8_000, every: float = 60, length: float = 3,
) -> Rates:  # fmt: skip
    """Stay at `base`, with `height` more for `length` at the end of each `every`."""
    quiet = (every - length) * MINUTE
    return [base + (height if second % (every * MINUTE) >= quiet else 0) for second in range(seconds)]


def two_peaks(
    seconds: int, chance: Random, *,
    base: float = 1_000, first: float = 6_000, second: float = 4_000,
    first_at: float = 9, second_at: float = 19, width: float = 1.5, noise: float = 0,
) -> Rates:  # fmt: skip
    """Peak twice a day, `first` and `second` above `base`, at hours of the day, `width` hours wide."""
    rates = []
    for now in range(seconds):
        hour = now % DAY / 3_600
        peaks = first * _bell(hour, first_at, width) + second * _bell(hour, second_at, width)
        rates.append(max(0.0, base + peaks + chance.uniform(-noise, noise)))
    return rates


def sines(
    seconds: int, chance: Random, *,
    mean: float = 4_000, amplitude1: float = 2_000, period1: float = 1_440, phase1: float = 0,
    amplitude2: float = 1_000, period2: float = 60, phase2: float = 0, noise: float = 0,
) -> Rates:  # fmt: skip
    """Add two sines, with phases in radians, and noise for each second."""
    rates = []
    for now in range(seconds):
        wave = amplitude1 * math.sin(2 * math.pi * now / (period1 * MINUTE) + phase1)
        wave += amplitude2 * math.sin(2 * math.pi * now / (period2 * MINUTE) + phase2)
        rates.append(max(0.0, mean + wave + chance.uniform(-noise, noise)))
    return rates


def seasonal(
    seconds: int, chance: Random, *,
    base: float = 2_000, amplitude: float = 1_000, period: float = 1_440, growth: float = 0.5,
    burst: float = 4_000, every: float = 180, length: float = 5, noise: float = 100,
) -> Rates:  # fmt: skip
    """Combine a season, linear growth by the share `growth` a day, bursts that rise and fall, and noise."""
    rates = []
    for now in range(seconds):
        season = base + amplitude * math.sin(2 * math.pi * now / (period * MINUTE))
        trend = 1 + growth * now / DAY
        place = now % (every * MINUTE) / (length * MINUTE)
        bursts = burst * (1 - abs(2 * place - 1)) if place < 1 and now >= every * MINUTE else 0
        rates.append(max(0.0, season * trend + bursts + chance.uniform(-noise, noise)))
    return rates


def web(
    seconds: int, chance: Random, *,
    mean: float = 2_000, day: float = 0.6, sigma: float = 0.4, memory: float = 0.9,
) -> Rates:  # fmt: skip
    """Follow web traffic: a daily cycle with its low before dawn, and bursts that last minutes.

    The size of bursts is log-normal: its logarithm has the deviation `sigma` and keeps the share `memory`
    of its value from minute to minute.
    """
    rates, burst = [], 0.0
    for minute in range(_minutes(seconds)):
        burst = memory * burst + math.sqrt(1 - memory**2) * chance.gauss(0, sigma)
        hour = minute / 60 % 24
        season = 1 + day * math.sin(2 * math.pi * (hour - 9) / 24)
        rates.append(mean * season * math.exp(burst - sigma**2 / 2))
    return _by_minute(rates, seconds)


def outage(
    seconds: int, chance: Random, *,
    rate: float = 2_000, at: float = 60, length: float = 20, release: float = 5,
) -> Rates:  # fmt: skip
    """Stop for `length`; within `release` after that, the rows held back arrive on top of the usual ones."""
    begin, end, drained = at * MINUTE, (at + length) * MINUTE, (at + length + release) * MINUTE
    held = rate * length / release
    return [
        0.0 if begin <= now < end else rate + held if end <= now < drained else rate for now in range(seconds)
    ]


SHAPES: Mapping[str, Shape] = {
    shape.__name__.replace("_", "-"): shape
    for shape in (
        *(constant, cosine, random_walk, increase, decrease, convergence, ramp, step, square, spikes),
        *(two_peaks, sines, seasonal, web, outage),
    )
}
"""Every shape by its name."""


def parameters(shape: Shape) -> Mapping[str, float]:
    """Return the parameters of a shape and their defaults."""
    named = inspect.signature(shape).parameters.values()
    return {one.name: float(one.default) for one in named if one.kind is inspect.Parameter.KEYWORD_ONLY}


def _minutes(seconds: int) -> int:
    return -(-seconds // MINUTE)


def _by_minute(rates: Rates, seconds: int) -> Rates:
    return [rates[second // MINUTE] for second in range(seconds)]


def _walk(seconds: int, chance: Random, start: float, down: float, up: float) -> Rates:
    def steps() -> Iterator[float]:
        rate = start
        while True:
            yield rate
            rate = max(0.0, rate + chance.uniform(-down, up))

    walk = steps()
    return _by_minute([next(walk) for _ in range(_minutes(seconds))], seconds)


def _bell(hour: float, peak: float, width: float) -> float:
    away = min(abs(hour - peak), 24 - abs(hour - peak))
    return math.exp(-(away**2) / (2 * width**2))


# ---- Loads as named on the command line: ``two-peaks:base=500,first=8000``, or a file of seconds and rates.


_MODIFIERS = {"scale": 1.0, "poisson": 0.0}
_MANY = 500


def load_of(text: str, seconds: int, seed: str) -> Load:
    """Return the load that a text describes, for this number of seconds.

    The text is the name of a shape or a file that ends in ``.csv``. A colon and ``name=number`` parameters
    may follow, separated by commas. `scale` multiplies all rates. With `poisson` 1, the rows of each second
    are drawn from a Poisson distribution with that rate. The same text, length and `seed` give the same load.

    Raises ValueError, which says what was found and what is allowed.
    """
    name, _, typed = text.partition(":")
    chance = Random(f"{seed}:{text}")
    is_file = name.endswith(".csv")
    if not is_file and name not in SHAPES:
        near = difflib.get_close_matches(name, SHAPES, 1)
        advice = f"type {near[0]}" if near else "name one of them"
        raise ValueError(
            f"there is no load '{name}', but {', '.join(SHAPES)} and files that end in .csv: {advice}"
        )
    known = {} if is_file else parameters(SHAPES[name])
    given = _parameters(name, typed, {**known, **_MODIFIERS})
    scale, poisson = given.pop("scale", 1.0), given.pop("poisson", 0.0)
    try:
        rates = read_csv(Path(name), seconds) if is_file else SHAPES[name](seconds, chance, **given)
    except ZeroDivisionError:
        raise ValueError(f"'{text}' divides by 0: give its periods and lengths as more than 0") from None
    if scale < 0:
        raise ValueError(f"scale={scale:g}: a load is scaled by a number from 0 up")
    rates = [rate * scale for rate in rates]
    return Load([_poisson(rate, chance) for rate in rates] if poisson else rates)


def read_csv(file: Path, seconds: int) -> list[float]:
    """Read lines of ``second,rows per second``, in order; each rate holds until the next line.

    A first line without a digit in its first cell is a header. Before the first second in the file, nothing
    arrives. Raises ValueError for an invalid line, with its number.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            changes = list(_changes(file, csv.reader(lines)))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read ({error}): name another file") from error
    if not changes:
        raise ValueError(f"{file} has no line of 'second,rows per second': write at least one")
    rates, now = [0.0] * seconds, 0.0
    ends = [*(second for second, _ in changes[1:]), max(seconds, changes[-1][0])]
    for (second, now), end in zip(changes, ends, strict=True):
        for place in range(min(second, seconds), min(end, seconds)):
            rates[place] = now
    return rates


def _changes(file: Path, rows: Iterable[list[str]]) -> Iterable[tuple[int, float]]:
    before = -1
    for number, row in enumerate(rows, 1):
        if not row:
            continue
        try:
            second, rate = int(row[0]), float(row[1])
        except (ValueError, IndexError):
            if number == 1 and not any(map(str.isdigit, row[0])):
                continue
            raise ValueError(
                f"{file}, line {number}: '{','.join(row)}' is not 'second,rows per second': write whole "
                "seconds and a number with a comma between them, such as 0,20000"
            ) from None
        if second <= before or not (math.isfinite(rate) and rate >= 0):
            raise ValueError(
                f"{file}, line {number}: found '{','.join(row)}', but seconds rise from 0 up, and rates are "
                "finite numbers from 0 up"
            )
        before = second
        yield second, rate


def _parameters(name: str, typed: str, known: dict[str, float]) -> dict[str, float]:
    given = {}
    for part in filter(None, typed.split(",")):
        key, _, text = part.partition("=")
        key = key.strip().replace("-", "_")
        if key not in known:
            allowed = ", ".join(f"{one}={default:g}" for one, default in known.items())
            raise ValueError(f"'{name}' has no parameter '{key}', but {allowed}: type one of these")
        try:
            given[key] = float(text)
        except ValueError:
            raise ValueError(f"'{part}' of '{name}' is no number: type {key}={known[key]:g}") from None
        if not math.isfinite(given[key]):
            raise ValueError(f"'{part}' of '{name}' is no finite number: type {key}={known[key]:g}")
    return given


def _poisson(rate: float, chance: Random) -> float:
    if rate > _MANY:  # close enough to a normal distribution
        return max(0.0, round(chance.gauss(rate, math.sqrt(rate))))
    rows, left = 0, math.exp(-rate)
    product = chance.random()
    while product > left:
        rows += 1
        product *= chance.random()
    return float(rows)
