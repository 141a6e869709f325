"""Splits a shell block into single commands without the shell's own syntax around them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from tests.unit.docs.pages import Block

_NESTED = re.compile(r"\$\(([^()]*)\)")
_SUBSTITUTED = "SUBSTITUTED"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
Command = tuple[str, ...]


def commands(block: Block) -> Iterator[Command]:
    """Return each command of a block: all of its lines or, in a console, those after a prompt."""
    text = block.text.replace("\\\n", " ")
    for line in text.splitlines():
        if block.language == "console":
            if not line.startswith("$ "):
                continue
            line = line.removeprefix("$ ")
        if line.strip():
            yield from parsed(line)


def parsed(line: str) -> Iterator[Command]:
    """Split a line at pipes and other operators; the content of $(...) counts as commands as well."""
    while found := _NESTED.search(line):
        yield from parsed(found[1])
        line = line[: found.start()] + _SUBSTITUTED + line[found.end() :]
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    command: list[str] = []
    redirected = False
    for word in (*lexer, ";"):
        if set(word) <= set("<>"):
            redirected = True
        elif set(word) <= set("|;&"):
            rest = _without_assignments(command)
            if rest:
                yield rest
            command = []
        elif redirected:
            redirected = False
        else:
            command.append(word)


def _without_assignments(words: list[str]) -> Command:
    if words and words[0] == "export":
        return ()
    first = next((i for i, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word)), len(words))
    return tuple(words[first:])
