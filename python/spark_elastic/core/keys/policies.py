"""Which policies say how many slots a query should have: one of them, or a chain."""

from __future__ import annotations

import difflib
import re

from spark_elastic.core.keys.key import Key
from spark_elastic.core.keys.kinds import Kind

DECLARED = "declared"
"""No policy at all: the declared bounds alone."""

SCHEDULE = "schedule"
"""What counts at which time of the day, and when nothing is changed."""

NAMES = (DECLARED, SCHEDULE, "autoscale")
"""The names of our own policies; `core/policies/catalogue.py` has them."""

PolicyChain = tuple[str, ...]
"""Names of policies, in the order in which they are asked."""


_WORD = r"[^\W\d]\w*"
_CLASS = re.compile(rf"{_WORD}(\.{_WORD})*:{_WORD}")
_ENTRY_POINT = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*")
_SLIP = 0.9
"""So much like one of ours a name is taken for a slip, and not for that of an installed policy."""


def may_be_custom(name: str) -> bool:
    """Say whether a name can be that of a custom policy: an entry point, or ``package.module:Class``.

    Whether there is one shows when it is imported, which nobody does here.
    """
    if name in NAMES or difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=_SLIP):
        return False
    return _CLASS.fullmatch(name) is not None or _ENTRY_POINT.fullmatch(name) is not None


def short(name: str) -> str:
    """Return what a policy is called in settings and in sentences: an entry point, or a class by itself."""
    return name.rpartition(":")[2]


def chain(names: tuple[str, ...]) -> Kind[PolicyChain]:
    """Allow one of `names` or a custom policy, or several with commas between them, each once.

    `declared` stands alone.
    """

    def ours(part: str) -> str:
        return part.lower() if part.lower() in names else part

    def parse(text: str) -> PolicyChain:
        found = tuple(ours(part.strip()) for part in text.split(","))
        alone = DECLARED not in found or found == (DECLARED,)
        known = all(name in names or may_be_custom(name) for name in found)
        if not (alone and known and len(set(map(short, found))) == len(found)):
            raise ValueError(text)
        return found

    return Kind(
        name=" \\| ".join(f"`{name}`" for name in names) + " \\| `package.module:Class`, …",
        parse=parse,
        format=",".join,
        allowed=f"one of {', '.join(names)}, the name of an installed policy or package.module:Class, or "
        "several of them, each once, with commas between "
        f"({DECLARED} only alone)",
        example=names[0],
        choices=names,
        listed=True,
    )


POLICY = Key[PolicyChain](
    "policy",
    chain(NAMES),
    (DECLARED,),
    "Who says how many slots a query should have (adaptive mode): one policy, or a chain of them such as "
    "`schedule,autoscale`, of which each keeps within the limits that those before it state, and the last "
    "one that names a number decides. `declared`: its bounds alone. `schedule`: the windows of "
    "`schedule.windows`, within its bounds. `autoscale`: what its micro-batches take and what arrives, "
    "within its bounds. Others are custom policies: a class, or an installed one by its name.",
    per_query="always",
)
