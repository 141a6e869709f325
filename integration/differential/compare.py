"""Compare the results of a program without and with the plugin; plain Spark is the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from integration.differential.program import Action, Program, Promise
from integration.differential.script import name

Results = Mapping[str, Mapping[str, Any]]

#: A run slower by more than this factor and these seconds deserves a second look.
SLOWER, SLOWER_S = 1.3, 0.4
#: A different count means different rows.
_KINDS = {"count": "rows"}
#: Actions that return rows in their order.
_IN_ORDER = frozenset({"collected", "iterated", "as_pandas", "taken"})
#: The key for an application that died or did not end in time.
ENDED = "application"
BUILDING = "building"
_FULL = "out of memory"


@frozen
class Difference:
    """A difference from plain Spark's result; `kind` names what is broken."""

    kind: str
    action: str
    text: str


def differences(program: Program, plain: Results, elastic: Results) -> list[Difference]:
    """Return the plugin's differences from the results that plain Spark guarantees."""
    return list(_differences(program, plain, elastic))


def _differences(program: Program, plain: Results, elastic: Results) -> Iterator[Difference]:
    for whole in (ENDED, BUILDING):
        if whole in plain or whole in elastic:
            yield from errors(whole, plain.get(whole, {}), elastic.get(whole, {}), strict=True)
            return
    for number, action in enumerate(program.actions):
        first = name(number, action, 0)
        yield from _compared(program, action, first, plain[first], elastic[first])
        second = name(number, action, 1)
        if second in plain:
            yield from _compared(program, action, second, plain[second], elastic[second])
            yield from _repeated(first, (plain[first], plain[second]), (elastic[first], elastic[second]))


def _compared(
    program: Program, action: Action, which: str, plain: Mapping[str, Any], elastic: Mapping[str, Any]
) -> Iterator[Difference]:
    chain = action.of(program.chain)
    promise = chain.promise
    if "error" in plain or "error" in elastic:
        # Spark does not guarantee the number of rows it reads until it has enough.
        strict = not chain.fails or (promise >= Promise.ROWS and action.name != "taken")
        yield from errors(which, plain, elastic, strict)
        return
    looked = {
        "count": promise >= Promise.COUNT,
        "rows": promise >= (Promise.ORDER if action.name == "taken" else Promise.ROWS),
        "order": promise >= Promise.ORDER and action.name in _IN_ORDER,
        "partitions": chain.counts,
        "files": chain.counts
        and promise >= Promise.ROWS
        and not action.arguments.get("by")
        and _plain_files(program),
    }
    for what, is_promised in looked.items():
        if is_promised and what in plain and plain[what] != elastic[what]:
            yield Difference(
                _KINDS.get(what, what),
                which,
                f"plain {_shown(plain, what)}, with the plugin {_shown(elastic, what)}",
            )
            return
    if plain.get("unequal") is False and elastic.get("unequal"):
        text = f"of {elastic['count']} rows the parts have {elastic['parts']}; plain {plain['parts']}"
        yield Difference("split", which, text)


def _plain_files(program: Program) -> bool:
    """Return whether each partition is written as one file."""
    return not any(key.endswith("maxRecordsPerFile") for key, _ in program.settings)


def _shown(found: Mapping[str, Any], what: str) -> str:
    more = (
        f" ({found['count']}: {', '.join(found['some'][:3])} …)" if "some" in found and what == "rows" else ""
    )
    return f"{found[what]}{more}"


def errors(
    which: str, plain: Mapping[str, Any], elastic: Mapping[str, Any], strict: bool
) -> Iterator[Difference]:
    was, got = plain.get("error"), elastic.get("error")
    if was == _FULL or (which == ENDED and was):
        return  # if plain Spark fails as well, the comparison proves nothing
    if got == _FULL:
        yield Difference("memory", which, f"plain {was or 'is well'}, with the plugin: {elastic.get('text')}")
    elif strict and was != got:
        text = elastic.get("text") or plain.get("text")
        yield Difference(
            "error", which, f"plain {was or 'is well'}, with the plugin {got or 'is well'}: {text}"
        )


def _repeated(which: str, plain: tuple[Any, Any], elastic: tuple[Any, Any]) -> Iterator[Difference]:
    """Yield a difference if plain Spark repeated its result and the plugin did not."""
    if any("error" in found for found in (*plain, *elastic)):
        return
    for what in ("count", "rows"):
        values = [found.get(what) for found in (*plain, *elastic)]
        if values[0] == values[1] and values[2] != values[3]:
            text = (
                f"{_shown(elastic[0], what)}, then {_shown(elastic[1], what)}; plain: {values[0]} both times"
            )
            yield Difference("repeat", which, text)
            return


def seconds(results: Results) -> float:
    """Return the total time (s) of the actions."""
    return float(sum(found.get("seconds", 0.0) for found in results.values()))


def slower(plain: float, elastic: float) -> bool:
    """Return whether a time (s) exceeds plain Spark's by enough to matter."""
    return elastic > SLOWER * plain and elastic > plain + SLOWER_S
