"""Leave steps out of a script as long as what it broke still breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from integration.chaos.plan import Step


def shrink(steps: Sequence[Step], breaks: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """Return fewer steps that still break: first large pieces are left out, at last single steps.

    `breaks` runs steps in a new world, so this takes minutes for each try.
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


def what_broke(failures: Sequence[dict[str, object]]) -> set[str]:
    """Name what is broken without what differs from run to run: the words up to the first number."""
    return {_words(str(failure["what"])) for failure in failures}


def _words(what: str) -> str:
    after = what.partition(" s ")[2] if what.startswith("after ") else what
    return next((after[:end] for end, letter in enumerate(after) if letter.isdigit()), after)[:60]
