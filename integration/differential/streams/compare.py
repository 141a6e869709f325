"""Compare the rows that a stream emitted without and with the plugin, and their micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from integration.differential.compare import BUILDING, ENDED, Difference, Results, errors
from integration.differential.streams.program import END, Stream, name


def differences(program: Stream, plain: Results, elastic: Results) -> list[Difference]:
    """Return only the first difference, as later ones may follow from it."""
    return list(_differences(program, plain, elastic))[:1]


def _differences(program: Stream, plain: Results, elastic: Results) -> Iterator[Difference]:
    for whole in (ENDED, BUILDING):
        if whole in plain or whole in elastic:
            yield from errors(whole, plain.get(whole, {}), elastic.get(whole, {}), strict=True)
            return
    for number, moment in enumerate(program.moments):
        if moment.name == "step":
            was, now = plain[name(number)], elastic[name(number)]
            if "error" in was or "error" in now:
                yield from errors(name(number), was, now, strict=True)
                return
            kind = _kind(was, now, program.is_exact)
            if kind:
                yield Difference(kind, name(number), f"plain {_shown(was)}, with the plugin {_shown(now)}")
    was, now = plain.get(END, {}), elastic.get(END, {})
    if was.get("unequal") is False and now.get("unequal") is not False:
        text = (
            f"a batch job has {now.get('count')} rows, the stream {now.get('emitted')}: {now.get('text', '')}"
        )
        yield Difference(END, END, text)


def _kind(was: Mapping[str, Any], now: Mapping[str, Any], is_exact: bool) -> str | None:
    """Return the kind of a step's difference: the rows, their micro-batch, or the watermark."""
    if was["count"] != now["count"] or (is_exact and was["rows"] != now["rows"]):
        return "rows"
    batches = [
        [(had, count, rows if is_exact else "") for had, _, count, rows in s["batches"]] for s in (was, now)
    ]
    if batches[0] != batches[1]:
        return "batch"
    watermarks = [[watermark for _, watermark, _, _ in s["batches"]] for s in (was, now)]
    return "watermark" if watermarks[0] != watermarks[1] else None


def _shown(found: Mapping[str, Any]) -> str:
    batches = "; ".join(
        f"{'with' if had else 'without'} input, watermark {watermark}, {count} rows"
        for had, watermark, count, _ in found["batches"]
    )
    return f"[{batches}] {', '.join(found['some'][:3])}"
