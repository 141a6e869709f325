"""What the runs of a comparison add up to: medians, ratios, and how sure they are; as text and as data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from attrs import field, frozen

from spark_elastic.core.reasons.reason import duration, size
from spark_elastic_lab.compare.cost import METRICS, WALL, Metric
from spark_elastic_lab.compare.run import Failed, Run
from spark_elastic_lab.compare.sides import SIDES, Side, order

_WIDTH = 100
_ENOUGH = 3
_SHORT_S = 30.0
_WARMED = 1.2
"""A first run that took longer than its side's others by this factor has probably warmed the machine up."""


@frozen(kw_only=True)
class Compared:
    """A comparison: how it was done, its runs, and what came of the outputs.

    `spark` and `mode` name the versions and the plugin's mode, `measured_by` what added up the stages, and
    `added` the arguments that each side got. `output` is the answer of `rows.compare`, or has `why` or
    `error` if the outputs were not compared.
    """

    rounds: int
    spark: str
    mode: str
    measured_by: str
    added: Mapping[Side, Sequence[str]]
    runs: Sequence[Run] = ()
    failed: Failed | None = None
    output: Mapping[str, Any] = field(factory=dict)

    @property
    def ok(self) -> bool:
        """Whether all runs succeeded, and no output differs or could not be read."""
        return self.failed is None and "error" not in self.output and self.same is not False

    @property
    def same(self) -> bool | None:
        """Whether both wrote the same rows, None if that was not compared."""
        if "sameSchema" not in self.output:
            return None
        return bool(
            self.output["sameSchema"] and not self.output["onlyInPlain"] and not self.output["onlyInElastic"]
        )

    def values(self, metric: Metric, side: Side) -> list[float]:
        """Return the values of a metric in the rounds of a side."""
        return [run.cost[metric.name] for run in self.runs if run.side == side]

    def ratios(self, metric: Metric) -> list[float]:
        """Return elastic's share of plain for each round in which plain is not 0."""
        pairs = zip(*(self.values(metric, side) for side in SIDES), strict=True)
        return [elastic / plain for plain, elastic in pairs if plain]

    def ratio(self, metric: Metric) -> float | None:
        """Return the ratio of the medians, elastic to plain, None if plain's is 0."""
        plain, elastic = (median(self.values(metric, side)) for side in SIDES)
        return elastic / plain if plain else None


def unsure(compared: Compared) -> list[str]:
    """Say how far the numbers of a comparison without failures can be trusted."""
    return list(_unsure(compared))


def _unsure(compared: Compared) -> Iterator[str]:
    wall = next(metric for metric in METRICS if metric.name == WALL)
    first = compared.runs[0]
    if compared.rounds == 1:
        yield (
            "one round: nothing says how much these numbers vary from run to run, and plain ran first, which "
            "fills caches for the other: type --rounds 3 or more"
        )
    elif compared.rounds < _ENOUGH:
        yield f"{compared.rounds} rounds: the range says little: type --rounds 3 or more"
    else:
        ratios = compared.ratios(wall)
        if min(ratios) < 1 < max(ratios):
            yield (
                f"wall time: the rounds disagree on which side is faster ({_range(ratios)}), so no "
                "difference is shown"
            )
        others = [
            run.cost[WALL] for run in compared.runs if run.side == first.side and run.number != first.number
        ]
        if first.cost[WALL] > _WARMED * max(others):
            yield (
                f"the first run took {_shown(first.cost[WALL], wall)}, others of {first.side} at most "
                f"{_shown(max(others), wall)}: it read from disks what later runs found in memory"
            )
    if compared.rounds > 1 and compared.rounds % 2:
        times = sum(order(number)[0] == SIDES[0] for number in range(1, compared.rounds + 1))
        yield (
            f"plain ran first in {times} of {compared.rounds} rounds: an even number would be fair to both"
        )
    if median(compared.values(wall, "plain")) < _SHORT_S:
        yield (
            f"runs shorter than {_SHORT_S:.0f} s are mostly the start of Spark, to which the plugin adds the "
            "start of a process"
        )
    if compared.output.get("digits"):
        yield "rows that differ only in the last digits of floating-point numbers count as the same"


# ---- Text.


def as_text(compared: Compared) -> str:
    """Return the whole comparison for people."""
    return "\n".join(_lines(compared))


def _lines(compared: Compared) -> Iterator[str]:
    count = "1 round" if compared.rounds == 1 else f"{compared.rounds} rounds"
    yield f"{compared.spark}, plain and {compared.mode}: {count}, in turns"
    if compared.failed is not None:
        yield f"Nothing is compared: {compared.failed}"
        yield compared.failed.log
        return
    spread = "  of each round" if compared.rounds > 1 else ""
    yield f"{'':17}{'plain':>12}{'elastic':>12}{'ratio':>9}{spread}"
    for metric in METRICS:
        plain, elastic = (_shown(median(compared.values(metric, side)), metric) for side in SIDES)
        ratio, ratios = compared.ratio(metric), compared.ratios(metric)
        times = f"{ratio:.2f} ×" if ratio is not None else "-"
        spread = _range(ratios) if len(ratios) > 1 else ""
        yield f"  {metric.title:15}{plain:>12}{elastic:>12}{times:>9}  {spread}".rstrip()
    yield f"Stages were measured by {compared.measured_by}."
    yield f"Output: {_output(compared)}"
    said = unsure(compared)
    if said:
        yield "How sure this is"
        for text in said:
            yield from textwrap.wrap(text, _WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _output(compared: Compared) -> str:
    output = compared.output
    if "sameSchema" not in output:
        return f"not compared: {output.get('error') or output.get('why')}"
    plain, elastic = output["rows"]["plain"], output["rows"]["elastic"]
    if not output["sameSchema"]:
        return f"DIFFERENT columns: plain {_columns(output, 'plain')}; elastic {_columns(output, 'elastic')}"
    if not compared.same:
        return (
            f"DIFFERENT rows: of {plain:,} of plain {output['onlyInPlain']:,} are not in elastic's; of "
            f"{elastic:,} of elastic {output['onlyInElastic']:,} are not in plain's ({output['format']})"
        )
    digits = output["digits"]
    close = (
        f"; {output['exact']['onlyInPlain']:,} only in the first {digits['double']} digits of doubles, or "
        f"{digits['float']} of floats"
        if digits
        else ""
    )
    return f"the same {plain:,} rows ({output['format']}){close}"


def _columns(output: Mapping[str, Any], side: Side) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in output["schema"][side])


def _range(ratios: Sequence[float]) -> str:
    return f"{min(ratios):.2f}–{max(ratios):.2f}"


def _shown(value: float, metric: Metric) -> str:
    if metric.unit == "s":
        return duration(value * 1_000)
    return size(round(value)) if metric.unit == "B" else f"{value:,.0f}"


# ---- Data.


def as_data(compared: Compared) -> dict[str, Any]:
    """Return the whole comparison for programs; docs/compare.md describes the fields."""
    failed = compared.failed
    complete = failed is None and bool(compared.runs)
    return {
        "rounds": compared.rounds,
        "spark": compared.spark,
        "mode": compared.mode,
        "measuredBy": compared.measured_by,
        "added": {side: list(words) for side, words in compared.added.items()},
        "runs": [{"round": run.number, "side": run.side, **run.cost} for run in compared.runs],
        "metrics": {metric.name: _metric(compared, metric) for metric in METRICS} if complete else None,
        "output": {"same": compared.same, **compared.output} if complete else None,
        "failed": None
        if failed is None
        else {
            "round": failed.number,
            "side": failed.side,
            "exitCode": failed.exit_code,
            "why": failed.why,
            "log": failed.log.splitlines(),
        },
        "unsure": unsure(compared) if complete else [],
    }


def _metric(compared: Compared, metric: Metric) -> dict[str, float | None]:
    ratios = compared.ratios(metric)
    return {
        **{side: median(compared.values(metric, side)) for side in SIDES},
        "ratio": compared.ratio(metric),
        "lowestRatio": min(ratios, default=None),
        "highestRatio": max(ratios, default=None),
    }
