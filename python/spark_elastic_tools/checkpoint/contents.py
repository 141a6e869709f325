"""What the partitions of state hold: counts, bytes and checksums, and a picture of how even they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from attrs import field, frozen

from spark_elastic.core.reasons.reason import size

_MASK = (1 << 64) - 1
# With at most this many partitions the picture shows each, else this many of the largest and a summary.
_SHOWN_ALL = 20
_SHOWN_LARGEST = 14
_BAR = 40


def _unsigned(number: int) -> int:
    return number & _MASK


@frozen
class Part:
    """One partition of state: its rows, and the bytes of their keys and values."""

    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Part) -> Part:
        return Part(self.rows + other.rows, self.bytes + other.bytes)


@frozen
class Checksum:
    """The number of rows, and their hashes added up and combined by exclusive or, as 64 unsigned bits.

    It depends neither on the order of the rows nor on the partitions that hold them.
    """

    rows: int
    total: int = field(converter=_unsigned)
    combined: int = field(converter=_unsigned)

    def __str__(self) -> str:
        return f"{self.rows:,} rows, checksum {self.total:016x}-{self.combined:016x}"


@frozen
class Contents:
    """The state of one store of an operator; its partitions in order."""

    operator: int
    store: str
    parts: tuple[Part, ...]
    checksum: Checksum

    @property
    def all(self) -> Part:
        """The partitions together."""
        return total(self.parts)


def total(parts: Iterable[Part]) -> Part:
    """Add up partitions."""
    return sum(parts, Part())


def together(contents: Sequence[Contents]) -> list[Part]:
    """Return the partitions with the state of all stores in each."""
    count = max((len(one.parts) for one in contents), default=0)
    return [total(one.parts[i] for one in contents if i < len(one.parts)) for i in range(count)]


def differences(before: Iterable[Contents], after: Iterable[Contents]) -> list[str]:
    """Return a sentence for each store whose rows are not exactly the same."""
    now = {(one.operator, one.store): one.checksum for one in after}
    found = []
    for one in before:
        other = now.get((one.operator, one.store))
        if other != one.checksum:
            found.append(f"operator {one.operator}, {one.store}: {one.checksum} before, {other} after")
    return found


def unevenness(parts: Sequence[Part]) -> float | None:
    """Return how many times the median the largest partition has, in bytes; None if the median is 0."""
    middle = median(part.bytes for part in parts) if parts else 0
    return max(part.bytes for part in parts) / middle if middle else None


def picture(parts: Sequence[Part]) -> list[str]:
    """Draw the bytes of partitions as bars, about 20 lines at most: with many, the largest and a summary."""
    numbered = list(enumerate(parts))
    if len(parts) <= _SHOWN_ALL:
        rows = [(str(number), part) for number, part in numbered]
    else:
        by_size = sorted(numbered, key=lambda one: (-one[1].bytes, one[0]))
        rows = [(str(number), part) for number, part in by_size[:_SHOWN_LARGEST]]
        rows += [("median", _median(parts)), ("smallest", by_size[-1][1])]
    largest = max((part.bytes for part in parts), default=0)
    lines = [f"{'partition':>9}  {'rows':>13}  {'bytes':>10}"]
    for name, part in rows:
        bar = "█" * round(_BAR * part.bytes / largest) if largest else ""
        bar = bar or ("▏" if part.rows else "")
        lines.append(f"{name:>9}  {part.rows:>13,}  {size(part.bytes):>10}  {bar}".rstrip())
    return [*lines, _conclusion(parts)]


def _median(parts: Sequence[Part]) -> Part:
    return Part(int(median(part.rows for part in parts)), int(median(part.bytes for part in parts)))


def _conclusion(parts: Sequence[Part]) -> str:
    empty = sum(part.rows == 0 for part in parts)
    uneven = unevenness(parts)
    said = []
    if len(parts) > _SHOWN_ALL:
        said.append(f"the {_SHOWN_LARGEST} largest of {len(parts)} partitions")
    if empty == len(parts):
        said.append("all partitions are empty")
    else:
        if uneven is not None:
            said.append(f"the largest has {uneven:.1f} times the bytes of the median")
        if empty:
            said.append(f"{empty} of {len(parts)} {'is' if empty == 1 else 'are'} empty")
    return f"{'':>9}  {'; '.join(said)}"
