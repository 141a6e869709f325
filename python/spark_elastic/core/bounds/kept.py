"""Bounds that somebody has asked for, as they are kept beside a query's checkpoint.

They outlive the driver, as the resource requirements of a Flink job do in its high-availability store. What
the policy file said about the query at that time goes with them: if it says something else when they are
read, the file has been changed since, and what was said later counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from spark_elastic.core.bounds.declared import WantedBounds, shortened
from spark_elastic.core.bounds.requirements import Bounds

# The texts that are kept beside a query's checkpoint: a first line with the form, then one for each fact.


class UnusableText(ValueError):
    """What is kept cannot be read; the text says why."""


def lines_of(text: str, form: str) -> Sequence[str]:
    """Return the lines of a text that has to be of this form. Raises Unusable."""
    found, *lines = text.splitlines() or [""]
    if found != form:
        raise UnusableText(f"it begins with {shortened(found)}, not with '{form}'")
    return lines


def unusable(line: str, why: str) -> UnusableText:
    """Return what says that this line cannot be read."""
    return UnusableText(f"{shortened(line)}: {why}")


_FORM = "spark-elastic bounds 1"
_ASKED, _FILE = "asked", "file"


@frozen(kw_only=True)
class Requested:
    """Bounds that somebody has asked for, by vertex, when the policy file said this of the query."""

    bounds: Mapping[str, Bounds]
    file: Mapping[str, WantedBounds] = field(factory=dict)

    @property
    def shown(self) -> str:
        """The bounds in words."""
        return ", ".join(f"{name} {_in_words(bound)}" for name, bound in self.bounds.items())

    def is_older_than(self, file: Mapping[str, WantedBounds]) -> bool:
        """Say whether the policy file, which says this of the query, was changed after the request."""
        return bool(file) and file != self.file


def _in_words(bound: Bounds) -> str:
    return f"{bound.lower} to {bound.upper}" + ("" if bound.target is None else f", target {bound.target}")


def write(requested: Requested) -> str:
    """Return the text that is kept: a line of its form, and one for the bounds of each vertex."""
    asked = (f"{_ASKED} {name} {_as_text(it)}" for name, it in sorted(requested.bounds.items()))
    file = (f"{_FILE} {name} {_as_text(it)}" for name, it in sorted(requested.file.items()))
    lines = (_FORM, *asked, *file)
    return "\n".join(lines) + "\n"


def _as_text(bound: Bounds | WantedBounds) -> str:
    return f"{bound.lower} {bound.upper}" + ("" if bound.target is None else f" {bound.target}")


def read(text: str) -> Requested:
    """Read what `write` has written. Raises Unusable."""
    bounds: dict[str, Bounds] = {}
    file: dict[str, WantedBounds] = {}
    for line in lines_of(text, _FORM):
        match line.split():
            case [whose, vertex, lower, upper, *target] if whose in (_ASKED, _FILE) and len(target) < 2:
                try:
                    wanted = int(target[0]) if target else None
                    if whose == _ASKED:
                        bounds[vertex] = Bounds(lower=int(lower), upper=int(upper), target=wanted)
                    else:
                        file[vertex] = WantedBounds(lower=int(lower), upper=int(upper), target=wanted)
                except ValueError as error:
                    raise unusable(line, str(error)) from error
            case _:
                raise unusable(line, "it is no line of it")
    return Requested(bounds=bounds, file=file)
