"""Requested bounds, as they are kept beside a query's checkpoint.

They outlive the driver, as the resource requirements of a Flink job do in its high-availability store. They
are kept with what the policy file said about the query at the time of the request. If it says something else
when they are read, the file was changed later, and the later statement takes precedence. Neither the request
nor the file has a time that could be trusted instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from spark_elastic.core.bounds.declared import WantedBounds, shortened
from spark_elastic.core.bounds.requirements import Bounds

# ---- The texts that are kept beside a query's checkpoint: a first line with the format, then one per fact.


class UnusableText(ValueError):
    """Raised if what is kept cannot be read; the message says why."""


def lines_of(text: str, form: str) -> Sequence[str]:
    """Return the lines of a text after the one with its format. Raises UnusableText for another format."""
    found, *lines = text.splitlines() or [""]
    if found != form:
        raise UnusableText(f"it begins with {shortened(found)}, not with '{form}'")
    return lines


def unusable(line: str, why: str) -> UnusableText:
    """Return the error that says why this line cannot be read."""
    return UnusableText(f"{shortened(line)}: {why}")


_FORM = "spark-elastic bounds 1"
_ASKED, _FILE = "asked", "file"


@frozen(kw_only=True)
class Requested:
    """Requested bounds, by vertex, and what the policy file said about the query at that time."""

    bounds: Mapping[str, Bounds]
    file: Mapping[str, WantedBounds] = field(factory=dict)

    @property
    def shown(self) -> str:
        """The bounds in words."""
        return ", ".join(f"{name} {_in_words(bound)}" for name, bound in self.bounds.items())

    def is_older_than(self, file: Mapping[str, WantedBounds]) -> bool:
        """Return whether the policy file, which now says `file` of the query, changed after the request."""
        return bool(file) and file != self.file


def _in_words(bound: Bounds) -> str:
    return f"{bound.lower} to {bound.upper}" + ("" if bound.target is None else f", target {bound.target}")


def write(requested: Requested) -> str:
    """Return the text to keep: a line with its format, then one for the bounds of each vertex."""
    asked = (f"{_ASKED} {name} {_as_text(it)}" for name, it in sorted(requested.bounds.items()))
    file = (f"{_FILE} {name} {_as_text(it)}" for name, it in sorted(requested.file.items()))
    lines = (_FORM, *asked, *file)
    return "\n".join(lines) + "\n"


def _as_text(bound: Bounds | WantedBounds) -> str:
    return f"{bound.lower} {bound.upper}" + ("" if bound.target is None else f" {bound.target}")


def read(text: str) -> Requested:
    """Read the output of `write`. Raises UnusableText."""
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
                raise unusable(line, "not a line of this form")
    return Requested(bounds=bounds, file=file)
