"""Loads as they are typed: ``two-peaks:base=500,first=8000``, or a file of seconds and rates."""

from __future__ import annotations

import csv
import difflib
import math
from collections.abc import Iterable
from pathlib import Path
from random import Random

from spark_elastic.simulator.loads.load import Load
from spark_elastic.simulator.loads.shapes import SHAPES, parameters

_MODIFIERS = {"scale": 1.0, "poisson": 0.0}
_MANY = 500


def load_of(text: str, seconds: int, seed: str) -> Load:
    """Return the load of so many seconds that a text describes.

    The text is the name of a shape, or a file that ends in ``.csv``, and after a colon ``name=number`` for
    its parameters, with commas between them. `scale` multiplies all rates, and with `poisson` 1 the rows of
    each second are by chance as many as in a Poisson process of that rate. The same text, length and `seed`
    give the same load.

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

    A first line whose first cell has no digit is a heading, and before the first second that is named nothing
    comes. Raises ValueError for what is no such line, with its number.
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
    if rate > _MANY:  # near enough to a normal one
        return max(0.0, round(chance.gauss(rate, math.sqrt(rate))))
    rows, left = 0, math.exp(-rate)
    product = chance.random()
    while product > left:
        rows += 1
        product *= chance.random()
    return float(rows)
