"""The messages for unusable settings: what was typed, what is allowed, what to type instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from spark_elastic.core.keys import flink
from spark_elastic.core.keys.key import PREFIX, Key, Malformed, camel, kebab
from spark_elastic.core.keys.policies import POLICY, PolicyChain
from spark_elastic.core.keys.rescaling import MODE


class SettingsError(ValueError):
    """Unusable settings; `errors` has one sentence for each error."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


_SLIP = 0.95
"""A name this similar to one of our settings counts as a misspelling of it, not as another Flink option."""


def unknown_name(name: str, names: Mapping[str, Key[Any]]) -> str:
    """Return the message for an unknown setting, with the nearest of `names` (camel case, without prefix).

    For an option of Flink's without a counterpart here, the message says what replaces it.
    """
    typed = camel(name.removeprefix(PREFIX)).lower()
    option = flink.option_of(kebab(name.removeprefix(PREFIX)))
    slips = difflib.get_close_matches(typed, [known.lower() for known in names], n=1, cutoff=_SLIP)
    if option is not None and not slips:
        return _of_flink(name, option)

    def likeness(known: str) -> float:
        # Users omit the long middle of a name, so its last parts are compared as well.
        parts = known.lower().split(".")
        ends = (".".join(parts[start:]) for start in range(len(parts)))
        return max(difflib.SequenceMatcher(None, typed, end).ratio() for end in ends)

    key = names[max(names, key=likeness)]
    return f"{name} is not a setting, the nearest is {key.full_name}: set that or remove {name}"


def _of_flink(name: str, option: flink.Option) -> str:
    words = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", option.instead).replace("`", "")
    place = f"{words} takes its place" if words else "nothing takes its place"
    return f"{name} is a Flink option and not a setting here, {place}: remove it, docs/migration.md says more"


def refused_value(key: Key[Any], name: str, text: str, prefix: str = PREFIX) -> str:
    """Return the message for a refused `text`, with a value to type: a similar choice, or the default."""
    found, allowed, better = wrong_part(key, text)
    return f"{name} is '{text}'{found}, allowed is {allowed}: set {prefix}{key.name}={better}"


def wrong_part(key: Key[Any], text: str) -> tuple[str, str, str]:
    """Return what to add to a refused text, what is allowed, and what to type instead."""
    try:
        key.kind.parse(text.strip())
    except Malformed as error:
        return f", which has {error.found}", error.allowed, error.better or usual(key)
    except (ValueError, KeyError):
        pass
    return "", key.kind.allowed, meant(key, text) or usual(key)


def meant(key: Key[Any], text: str) -> str:
    """Return what a refused text probably meant, or "" if that is unknown."""
    parts = text.split(",") if key.kind.listed else [text]
    near = (difflib.get_close_matches(part.strip(), key.kind.choices, n=1) for part in parts)
    found = ",".join(dict.fromkeys(match for matches in near for match in matches))
    try:
        key.kind.parse(found)
    except (ValueError, KeyError):
        return ""
    return found


def usual(key: Key[Any]) -> str:
    """Return the default of a setting as text, or an example value if it has none."""
    return key.kind.example if key.default in (None, ()) else key.format(key.default)


def said_twice(key: Key[Any], first: str, second: str, conf: Mapping[str, str]) -> str:
    """Return the message for two names of one setting that have different values."""
    return (
        f"{first} is '{conf[first]}' and {second} is '{conf[second]}', but they are one setting: "
        f"keep only {key.full_name}={conf[first]}"
    )


def policy_without_bounds(mode: str, policy: PolicyChain) -> str:
    """Return the message for a policy in a mode where it has no effect, because queries use all slots."""
    return (
        f"{POLICY.full_name} is '{POLICY.format(policy)}' while {MODE.full_name} is {mode}, allowed is "
        f"{POLICY.format(POLICY.default)} then: set {MODE.full_name}=adaptive"
    )


def mode_is_off(queries: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return messages for queries with another mode while the application's is off: nothing acts on it."""
    others = f"{PREFIX}query.*.{MODE.name}=off"
    return [
        f"{PREFIX}query.{name}.{MODE.name} is '{texts[MODE.name]}' while {MODE.full_name} is off, allowed is "
        f"off then: set {MODE.full_name}={texts[MODE.name]}, and {others} for the others"
        for name, texts in queries.items()
        if texts.get(MODE.name, "off") != "off"
    ]
