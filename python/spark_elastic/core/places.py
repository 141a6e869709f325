"""Folders of file systems, compared as Hadoop would understand them: what is below what."""

from __future__ import annotations

import re

from attrs import frozen

__all__ = ["Place", "has_login"]

# Hadoop has the first colon before any slash end the scheme, and an authority follow two slashes.
_PARTS = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*):)?(?://(?P<authority>[^/]*))?(?P<path>(?:/.*)?)", re.IGNORECASE
)
# Nobody may have to know who decodes, cuts off or turns round what.
_AMBIGUOUS = re.compile(r"[\x00-\x1f\x7f%?#\\]")
# With these a name before the @ is that of a container, with all others it is a login.
_WITH_CONTAINER = ("abfs", "abfss", "wasb", "wasbs")


@frozen
class Place:
    """A folder: its file system's scheme ("" for the default one), authority, and the way from its root."""

    scheme: str
    authority: str
    segments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read an absolute path or a URI. Raises ValueError, with what is wrong and not with the text."""
        if text != text.strip() or _AMBIGUOUS.search(text):
            raise ValueError("it has blanks around it, or one of % ? # \\ or a control character in it")
        found = _PARTS.fullmatch(text)
        if found is None or not (found["path"] or found["authority"]):
            raise ValueError("it is neither an absolute path nor a URI")
        scheme, authority = (found["scheme"] or "").lower(), found["authority"] or ""
        if authority and not scheme:
            raise ValueError("it names a host without a scheme")
        if has_login(text):
            raise ValueError("it has a login in it")
        segments = tuple(segment for segment in found["path"].split("/") if segment)
        if not {".", ".."}.isdisjoint(segments):
            raise ValueError("it has '.' or '..' in it")
        return cls(scheme, authority, segments)

    def is_within(self, other: Place) -> bool:
        """Say whether it is another folder, or below that."""
        same = (self.scheme, self.authority) == (other.scheme, other.authority)
        return same and self.segments[: len(other.segments)] == other.segments

    def __str__(self) -> str:
        scheme = f"{self.scheme}:" if self.scheme else ""
        authority = f"//{self.authority}" if self.authority else ""
        return f"{scheme}{authority}/{'/'.join(self.segments)}"


def has_login(text: str) -> bool:
    """Say whether a URI has a user's name or password in it."""
    found = _PARTS.fullmatch(text)
    user, at, _ = ((found and found["authority"]) or "").rpartition("@")
    with_container = found is not None and (found["scheme"] or "").lower() in _WITH_CONTAINER
    return bool(at) and (":" in user or not with_container)
