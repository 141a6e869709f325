"""What is said of settings that cannot be used: what was typed, what is allowed, what to type."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Set
from typing import Any

from spark_elastic.core.keys import batch, rescaling, restarts
from spark_elastic.core.keys.key import PREFIX, Key
from spark_elastic.core.keys.kinds import camel

# Two values of which the second may not be below the first, and what to call the first.
_ORDERED: tuple[tuple[Key[Any], Key[Any], str], ...] = (
    (rescaling.COOLDOWN_MS, rescaling.SCALING_INTERVAL_MAX_MS, "the cooldown after rescaling"),
    (restarts.INITIAL_BACKOFF_MS, restarts.MAX_BACKOFF_MS, "the initial backoff"),
    (batch.MIN_PARALLELISM, batch.MAX_PARALLELISM, batch.MIN_PARALLELISM.full_name),
)


class SettingsError(ValueError):
    """Settings that cannot be used: `errors` has one sentence for each."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


def unknown_name(name: str, names: Mapping[str, Key[Any]]) -> str:
    """Name the nearest of `names` (in camel case, without the prefix) to one that is no setting."""
    typed = camel(name.removeprefix(PREFIX)).lower()

    def likeness(known: str) -> float:
        # People leave out the long middle of a name, so its last parts are compared as well.
        parts = known.lower().split(".")
        ends = (".".join(parts[start:]) for start in range(len(parts)))
        return max(difflib.SequenceMatcher(None, typed, end).ratio() for end in ends)

    key = names[max(names, key=likeness)]
    return f"{name} is no setting, the nearest is {key.full_name}: set that or remove {name}"


def refused_value(key: Key[Any], name: str, text: str) -> str:
    """Say what may be typed instead of `text`: a choice that looks like it, or the default."""
    near = difflib.get_close_matches(text, key.kind.choices, n=1)
    usual = key.kind.example if key.default is None else key.format(key.default)
    better = near[0] if near else usual
    return f"{name} is '{text}', allowed is {key.kind.allowed}: set {key.full_name}={better}"


def said_twice(key: Key[Any], first: str, second: str, conf: Mapping[str, str]) -> str:
    """Say that two names of one setting have different values."""
    return (
        f"{first} is '{conf[first]}' and {second} is '{conf[second]}', but they are one setting: "
        f"keep only {key.full_name}={conf[first]}"
    )


def contradictions(values: Mapping[Key[Any], Any], refused: Set[Key[Any]]) -> list[str]:
    """Compare the values that belong together; what was refused is no value to compare with."""
    errors: list[str] = []
    for low, high, low_words in _ORDERED:
        least, most = values[low], values[high]
        if {low, high} & refused or most is None or most >= least:
            continue
        errors.append(
            f"{high.full_name} is '{high.format(most)}', allowed is at least {low_words}, "
            f"'{high.format(least)}': set {high.full_name}={high.format(least)}"
        )
    return errors
