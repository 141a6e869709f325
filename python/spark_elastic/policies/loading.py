"""Find the class of a custom policy, and create a policy with the options set for it."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from spark_elastic.core.keys.key import PREFIX
from spark_elastic.core.keys.policies import NAMES as OURS
from spark_elastic.core.keys.policies import short
from spark_elastic.core.policies.policy import Policy
from spark_elastic.policies.answers import described

GROUP = "spark_elastic.policies"
"""The group of entry points in which packages name their policies."""


class UnusablePolicy(ValueError):
    """A custom policy cannot be used; the text says what was found, what is allowed and what to do."""


def make(name: str, options: Mapping[str, str]) -> Policy:
    """Import a policy, an entry point or ``package.module:Class``, and call it with its options.

    This runs code that is not ours. Raises UnusablePolicy.
    """
    build = _class(name) if ":" in name else _entry_point(name)
    try:
        policy: Any = build(**options)
    except (Exception, SystemExit) as error:
        given = ", ".join(f"{option}={text}" for option, text in options.items()) or "no options"
        raise UnusablePolicy(
            f"the policy {name} cannot be made with {given}: {described(error)}: set {option_name(name)} "
            "as its constructor wants it"
        ) from error
    if not callable(getattr(policy, "decide", None)):
        raise UnusablePolicy(f"the policy {name} is a {type(policy).__name__}: give it a method decide(view)")
    made: Policy = policy
    return made


def option_name(name: str, option: str = "OPTION") -> str:
    """Return the name of the setting that holds an option of a policy."""
    return f"{PREFIX}policy.{short(name)}.{option}"


def _class(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:
        raise UnusablePolicy(
            f"the policy {name} cannot be imported: {described(error)}: install its package where the "
            f"policy process runs, with the Python of {PREFIX}python"
        ) from error
    if not callable(found):
        raise UnusablePolicy(
            f"the policy {name} is a {type(found).__name__}: name a class with a method decide(view)"
        )
    build: Callable[..., Any] = found
    return build


def installed() -> Mapping[str, EntryPoint]:
    """Return the policies that installed packages name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _entry_point(name: str) -> Callable[..., Any]:
    found = installed()
    if name not in found:
        allowed = (*OURS, *found)
        near = difflib.get_close_matches(name, allowed, 1)
        advice = f"set {near[0]}" if near else f"install the package whose entry point of {GROUP} it is"
        raise UnusablePolicy(
            f"there is no policy {name}, allowed are {', '.join(allowed)}, or package.module:Class: {advice}"
        )
    try:
        build: Callable[..., Any] = found[name].load()
    except (Exception, SystemExit) as error:
        raise UnusablePolicy(
            f"the policy {name} ({found[name].value}) cannot be imported: {described(error)}: repair its "
            "package"
        ) from error
    return build
