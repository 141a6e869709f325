"""The options of custom policies: ``spark.elastic.policy.NAME.OPTION``, passed on as typed.

NAME is the name of the policy: its entry point, or the class after the colon. The policy itself defines its
options and their values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from spark_elastic.core.keys import key
from spark_elastic.core.keys.policies import NAMES as OURS

PREFIX = f"{key.PREFIX}policy."
EXAMPLE = "policy.NAME.OPTION"
DOC = (
    "Option of a custom policy, handed to its constructor as text. NAME is its entry point, or its class: "
    "`policy.LateNight.slots` for `my_package.scaling:LateNight`."
)

Options = Mapping[str, Mapping[str, str]]
"""Options by the name of the policy."""


def is_one(name: str) -> bool:
    """Return whether a name is an option of a policy, or an attempt at one."""
    return name.startswith(PREFIX)


def read(conf: Mapping[str, str], used: Collection[str], *, more: bool) -> tuple[Options, tuple[str, ...]]:
    """Return the options, and all errors.

    `used` has the names of the policies in the settings. `more` says that the policy file may name others.
    """
    options: dict[str, dict[str, str]] = {}
    errors = []
    for name, text in sorted(conf.items()):
        if not is_one(name):
            continue
        policy, _, option = name.removeprefix(PREFIX).partition(".")
        if not (policy and option.isidentifier()):
            errors.append(
                f"{name} is no option of a policy, allowed is {PREFIX}NAME.OPTION, the option an argument: "
                f"set {PREFIX}{policy or 'LateNight'}.slots={text}"
            )
        elif policy in OURS:
            errors.append(
                f"{name} is an option of a custom policy, and {policy} is none: set "
                f"{key.PREFIX}{policy}.{option}={text}"
            )
        elif policy not in used and not more:
            allowed = ", ".join(sorted(used)) or "none"
            errors.append(
                f"{name} is for the policy {policy}, which nothing uses, custom policies in use are "
                f"{allowed}: name it in {key.PREFIX}policy or remove {name}"
            )
        else:
            options.setdefault(policy, {})[option] = text
    return options, tuple(errors)


def only(conf: Mapping[str, str], policies: Collection[str]) -> dict[str, str]:
    """Return the settings without the options of policies other than `policies`."""
    return {
        name: text
        for name, text in conf.items()
        if not is_one(name) or name.removeprefix(PREFIX).partition(".")[0] in policies
    }


def write(options: Options) -> dict[str, str]:
    """Return options as settings; `read` reads them back."""
    return {
        f"{PREFIX}{policy}.{option}": text for policy, own in options.items() for option, text in own.items()
    }
