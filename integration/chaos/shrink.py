"""Repeat a script that broke something, and drop steps as long as the same thing still breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from integration.chaos.plan import Step

#: The number of repetitions of a script that broke something.
TIMES = 3


@frozen
class Again:
    """The result of repeating a script: how often of `TIMES` it broke the same way, and its shortest form."""

    times: int
    shortest: list[Step]


def again(
    steps: Sequence[Step], wanted: set[str], run: Callable[[Sequence[Step]], Mapping[str, Any]]
) -> Again:
    """Repeat a script that broke `wanted` three times; shrink it if it breaks some of that again.

    `run` runs steps in a new world and returns the result, so each try takes minutes.
    """

    def breaks(fewer: Sequence[Step]) -> bool:
        return bool(what_broke(run(fewer)) & wanted)

    times = sum(breaks(steps) for _ in range(TIMES))
    return Again(times, shrink(steps, breaks) if times else list(steps))


def shrink(steps: Sequence[Step], breaks: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """Return fewer steps that still break: drop large pieces first, single steps last.

    `breaks` runs steps in a new world, so each try takes minutes.
    """
    left = list(steps)
    size = max(1, len(left) // 2)
    while True:
        start, shorter = 0, False
        while start < len(left) and len(left) > 1:
            fewer = left[:start] + left[start + size :]
            if fewer and breaks(fewer):
                left, shorter = fewer, True
            else:
                start += size
        if size == 1 and not shorter:
            return left
        size = max(1, size // 2)


def what_broke(result: Mapping[str, Any]) -> set[str]:
    """Name what a run broke, without the parts that vary between runs: the words up to the first number."""
    failures = (str(failure["what"]) for failure in result.get("failures", ()))
    errors = (f"unknown error {error}" for error in result.get("unknown_errors", ()))
    left = (f"left over: {name}" for name in result.get("left_over", ()))
    return {_words(what) for what in (*failures, *errors, *left)}


def _words(what: str) -> str:
    after = what.partition(" s ")[2] if what.startswith("after ") else what
    return next((after[:end] for end, letter in enumerate(after) if letter.isdigit()), after)[:60]
