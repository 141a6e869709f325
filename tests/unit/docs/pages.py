"""The content of README and docs: pages, their code blocks, headings, links and inline code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

CHECKOUT = Path(__file__).parents[3]
_FENCE = re.compile(r"^( *)```(\S*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_INLINE = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")


@frozen
class Block:
    """A fenced block of a page: its language, its unindented text, and its first line number."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@frozen
class Page:
    """A page, by its path in the checkout."""

    path: str
    text: str

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        for found in _FENCE.finditer(self.text):
            indent, language, body = found.groups()
            line = self.text.count("\n", 0, found.start()) + 1
            yield Block(self.path, line, language, re.sub(rf"(?m)^{indent}", "", body))

    @property
    def prose(self) -> str:
        """The text without fenced blocks."""
        return _FENCE.sub("", self.text)

    @property
    def inline(self) -> tuple[str, ...]:
        """The inline code of the prose."""
        return tuple(" ".join(code.split()) for code in _INLINE.findall(self.prose))

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(_HEADING.findall(self.prose))

    @property
    def links(self) -> tuple[str, ...]:
        return tuple(_LINK.findall(_INLINE.sub("", self.prose)))


def read(path: str) -> Page:
    return Page(path, (CHECKOUT / path).read_text(encoding="utf-8"))


GUIDE = tuple(
    read(path.relative_to(CHECKOUT).as_posix())
    for path in (
        CHECKOUT / "README.md",
        *sorted((CHECKOUT / "docs").glob("*.md")),
        *sorted((CHECKOUT / "conf").glob("*/README.md")),
    )
)
"""The pages that users read."""

PAGES = (*GUIDE, *map(read, ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")))
"""All pages whose links are checked."""
