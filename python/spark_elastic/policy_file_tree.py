"""The text of a policy file as a tree in which every value knows its line, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Literal

import yaml
from attrs import evolve, field, frozen

__all__ = ["MAX_SIZE", "VERSION", "Errors", "Kind", "Node", "member", "parse", "quoted"]

MAX_SIZE = 1 << 20
"""The most bytes that a policy file may have."""

VERSION = "1"
# Nothing that means something is deeper; what is would only be there to make the parser sweat.
_MAX_DEPTH = 8
_TOO_DEEP = "the file is nested too deeply here"
LONGEST_TEXT = 60

Kind = Literal["mapping", "list", "value"]


@frozen(kw_only=True)
class Node:
    """A value of the file: `text` is that of a plain value, `line` (from 1) is where it or its name is."""

    kind: Kind
    line: int
    text: str = ""
    quoted: bool = False
    entries: Mapping[str, Node] = field(factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands there."""
        return self.kind == "value" and not self.quoted and self.text in ("", "~", "null")

    def shown(self) -> str:
        """Return what was found, shortened."""
        if self.kind != "value":
            return f"a {self.kind}"
        if self.is_empty:
            return "empty"
        return f"the text {quoted(self.text)}" if self.quoted else quoted(self.text)


class Errors:
    """What is wrong, by line."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []

    def add(self, line: int, message: str) -> None:
        """Note what is wrong in a line, 0 for the file."""
        self.found.append((line, message))

    def in_order(self) -> tuple[str, ...]:
        """Return a sentence for each error, by line."""
        found = sorted(self.found, key=lambda error: error[0])
        return tuple(f"line {line}: {message}" if line else message for line, message in found)


class _Unusable(Exception):
    """The file ends here: what follows cannot be understood."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str | bytes, errors: Errors) -> Node | None:
    """Return the one document of the file, None if there is none that can be understood."""
    try:
        return _document(_checked(text), errors)
    except _Unusable as error:
        errors.add(error.line, str(error))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        # libyaml has a limit of its own, and reads ahead of the events that `_Builder` counts.
        message = _TOO_DEEP if "nesting depth" in problem else f"the file is no YAML: {problem}"
        errors.add(0 if mark is None else mark.line + 1, message)
    return None


def _checked(text: str | bytes) -> str:
    try:
        content = text.encode() if isinstance(text, str) else text
        if len(content) > MAX_SIZE:
            raise _Unusable(0, f"the file is too long, allowed is up to {MAX_SIZE} bytes: shorten it")
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        raise _Unusable(0, "the file is no UTF-8 text: save it as UTF-8") from error


def _document(text: str, errors: Errors) -> Node:
    # The parser that is written in C is twenty times faster, and not there in every installation.
    parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml.parse(text, Loader=parser), errors)
    return builder.document()


class _Builder:
    """Builds the tree from the parser's events, so that nothing is constructed that was not looked at."""

    def __init__(self, events: Iterable[yaml.Event], errors: Errors) -> None:
        self._events = (event for event in events if not isinstance(event, yaml.StreamStartEvent))
        self._errors = errors

    def document(self) -> Node:
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise _Unusable(0, f"the file is empty: begin it with version: {VERSION}")
        root = self._node(next(self._events), ())
        next(self._events)
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise _Unusable(_line(following), "a second document begins here, allowed is one: remove it")
        return root

    def _node(self, event: Any, path: tuple[str, ...]) -> Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            where = _path(path)
            raise _Unusable(line, f"{where}: *{event.anchor} is an alias, allowed is a value: write it out")
        for sort, found in (("an anchor", event.anchor), ("a tag", event.tag)):
            if found is not None:
                where = f"{_path(path)}: " if path else ""
                self._errors.add(line, f"{where}{found} is {sort}, allowed are values only: remove it")
        if len(path) > _MAX_DEPTH:
            raise _Unusable(line, _TOO_DEEP)
        if isinstance(event, yaml.MappingStartEvent):
            return Node(kind="mapping", line=line, entries=self._entries(path))
        if isinstance(event, yaml.SequenceStartEvent):
            while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                self._node(inner, (*path, "-"))
            return Node(kind="list", line=line)
        return Node(kind="value", line=line, text=event.value, quoted=not event.implicit[0])

    def _entries(self, path: tuple[str, ...]) -> Mapping[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, (*path, "?"))
            inner = (*path, key.text)
            value = evolve(self._node(next(self._events), inner), line=key.line)
            if key.kind != "value" or key.is_empty:
                where = f"in {_path(path)}" if path else "in the file"
                self._errors.add(key.line, f"a name {where} is {key.shown()}, allowed is a text: write one")
            elif key.text in entries:
                first = entries[key.text].line
                message = f"{_path(inner)} is there twice, first in line {first}, allowed is once: keep one"
                self._errors.add(key.line, message)
            else:
                entries[key.text] = value
        return entries


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1


def member(path: str, name: str) -> str:
    """Return the path of an entry; a name that could be taken for two or for a sentence is quoted."""
    shown = name if len(name) <= LONGEST_TEXT and re.fullmatch(r"[\w-]+", name) else quoted(name)
    return f"{path}.{shown}" if path else shown


def _path(names: Iterable[str]) -> str:
    return reduce(member, names, "")


def quoted(text: str) -> str:
    """Return a text that was found, in quotes, cut where it is long."""
    return f"'{text}'" if len(text) <= LONGEST_TEXT else f"'{text[:LONGEST_TEXT]}…'"
