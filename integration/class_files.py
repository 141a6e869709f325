"""The content of class files."""

from __future__ import annotations

from attrs import frozen

TEXT = 1
_MAGIC = b"\xca\xfe\xba\xbe"
_HEAD = 10
# The number of bytes after the tag of a constant; a text has its own length.
_SIZES = {
    **{3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4},
    **{15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2},
}


@frozen
class ClassFile:
    """A class file in three parts: the bytes before its constants, the constants with tags, and the rest."""

    head: bytes
    constants: tuple[bytes, ...]
    rest: bytes

    @property
    def version(self) -> int:
        """The major version: 52 is that of Java 8."""
        return int.from_bytes(self.head[6:8], "big")

    @property
    def texts(self) -> frozenset[str]:
        """All names, descriptors and literals."""
        return frozenset(c[3:].decode(errors="replace") for c in self.constants if c[0] == TEXT)

    def __bytes__(self) -> bytes:
        return b"".join((self.head, *self.constants, self.rest))


def is_class(content: bytes) -> bool:
    """Return whether a file is a class file, by its first bytes."""
    return content.startswith(_MAGIC)


def parse(content: bytes) -> ClassFile:
    """Parse a class file. Raises KeyError for a constant of an unknown kind."""
    constants = []
    at, index, end = _HEAD, 1, int.from_bytes(content[8:_HEAD], "big")
    while index < end:
        tag = content[at]
        size = 2 + int.from_bytes(content[at + 1 : at + 3], "big") if tag == TEXT else _SIZES[tag]
        constants.append(content[at : at + 1 + size])
        at += 1 + size
        index += 2 if tag in (5, 6) else 1  # long and double count twice
    return ClassFile(content[:_HEAD], tuple(constants), content[at:])
