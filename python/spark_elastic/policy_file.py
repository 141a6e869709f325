"""The policy file: bounds for queries by their names, in YAML.

    version: 1
    defaults:              # for every query that is not named below
      upperBound: 8
    queries:
      counts:              # the query's name
        lowerBound: 2
        upperBound: 6
      orders:
        vertices:          # the same in full
          shuffle: {lowerBound: 1, upperBound: -1}
          source-0: {upperBound: 4}     # most tasks that read its first source

A bound that is left out is that of the defaults, or none. Beside the bounds there may be `priority`, `weight`
and `slotSharingGroup`, the last one of a vertex as well.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Literal

import yaml
from attrs import evolve, field, frozen

from spark_elastic.core.bounds.declared import NO_BOUND, WantedBounds
from spark_elastic.core.bounds.requirements import MAX_PARALLELISM, SHUFFLE
from spark_elastic.core.bounds.sharing import NOTHING_WANTED, WantedSharing, read, what_is_allowed

__all__ = ["MAX_SIZE", "PolicyFile", "PolicyFileError", "load_policy"]

MAX_SIZE = 1 << 20
"""The most bytes that a policy file may have."""

_VERSION = "1"
# Nothing that means something is deeper; what is would only be there to make the parser sweat.
_MAX_DEPTH = 8
_LONGEST_TEXT = 60
_ALLOWED_BOUND = f"a whole number from 1 to {MAX_PARALLELISM}, or -1 for no bound"
_WHOLE = re.compile(r"-1|[1-9][0-9]{0,8}", re.ASCII)
_BOUNDS = ("lowerBound", "upperBound")
_GROUP = "slotSharingGroup"
_SHARING = ("priority", "weight", _GROUP)


class PolicyFileError(ValueError):
    """A policy file that cannot be used: `errors` has one sentence for each thing that is wrong."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


@frozen(kw_only=True)
class PolicyFile:
    """What a policy file says: -1 stands for no bound.

    `queries` is by the name of the query and the id of its vertex; `defaults` None says nothing about other
    queries. `sharing` is by the name of the query, `default_sharing` is for what is not said there.
    """

    defaults: WantedBounds | None = None
    queries: Mapping[str, Mapping[str, WantedBounds]] = field(factory=dict)
    default_sharing: WantedSharing = NOTHING_WANTED
    sharing: Mapping[str, WantedSharing] = field(factory=dict)


def load_policy(text: str | bytes) -> PolicyFile:
    """Read a policy file. Raises PolicyFileError with every error found."""
    errors = _Errors()
    root = _parse(text, errors)
    policy = PolicyFile() if root is None else _policy(root, errors)
    if errors.found:
        raise PolicyFileError(errors.in_order())
    return policy


# Parsing: text to a tree in which every value knows its line.

Kind = Literal["mapping", "list", "value"]


@frozen(kw_only=True)
class _Node:
    """A value of the file: `text` is that of a plain value, `line` (from 1) is where it or its name is."""

    kind: Kind
    line: int
    text: str = ""
    quoted: bool = False
    entries: Mapping[str, _Node] = field(factory=dict)

    @property
    def is_empty(self) -> bool:
        return self.kind == "value" and not self.quoted and self.text in ("", "~", "null")

    def shown(self) -> str:
        """Return what was found, shortened."""
        if self.kind != "value":
            return f"a {self.kind}"
        if self.is_empty:
            return "empty"
        return f"the text {_quoted(self.text)}" if self.quoted else _quoted(self.text)


class _Errors:
    """What is wrong, by line."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []

    def add(self, line: int, message: str) -> None:
        self.found.append((line, message))

    def in_order(self) -> tuple[str, ...]:
        found = sorted(self.found, key=lambda error: error[0])
        return tuple(f"line {line}: {message}" if line else message for line, message in found)


class _Unusable(Exception):
    """The file ends here: what follows cannot be understood."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def _parse(text: str | bytes, errors: _Errors) -> _Node | None:
    """Return the one document of the file, None if there is none that can be understood."""
    try:
        return _document(_checked(text), errors)
    except _Unusable as error:
        errors.add(error.line, str(error))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        errors.add(0 if mark is None else mark.line + 1, f"the file is no YAML: {problem}")
    return None


def _checked(text: str | bytes) -> str:
    try:
        content = text.encode() if isinstance(text, str) else text
        if len(content) > MAX_SIZE:
            raise _Unusable(0, f"the file is too long, allowed is up to {MAX_SIZE} bytes: shorten it")
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        raise _Unusable(0, "the file is no UTF-8 text: save it as UTF-8") from error


def _document(text: str, errors: _Errors) -> _Node:
    # The parser that is written in C is twenty times faster, and not there in every installation.
    parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml.parse(text, Loader=parser), errors)
    return builder.document()


class _Builder:
    """Builds the tree from the parser's events, so that nothing is constructed that was not looked at."""

    def __init__(self, events: Iterable[yaml.Event], errors: _Errors) -> None:
        self._events = (event for event in events if not isinstance(event, yaml.StreamStartEvent))
        self._errors = errors

    def document(self) -> _Node:
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise _Unusable(0, f"the file is empty: begin it with version: {_VERSION}")
        root = self._node(next(self._events), ())
        next(self._events)
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise _Unusable(_line(following), "a second document begins here, allowed is one: remove it")
        return root

    def _node(self, event: Any, path: tuple[str, ...]) -> _Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            where = _path(path)
            raise _Unusable(line, f"{where}: *{event.anchor} is an alias, allowed is a value: write it out")
        for sort, found in (("an anchor", event.anchor), ("a tag", event.tag)):
            if found is not None:
                where = f"{_path(path)}: " if path else ""
                self._errors.add(line, f"{where}{found} is {sort}, allowed are values only: remove it")
        if len(path) > _MAX_DEPTH:
            raise _Unusable(line, "the file is nested too deeply here")
        if isinstance(event, yaml.MappingStartEvent):
            return _Node(kind="mapping", line=line, entries=self._entries(path))
        if isinstance(event, yaml.SequenceStartEvent):
            while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                self._node(inner, (*path, "-"))
            return _Node(kind="list", line=line)
        return _Node(kind="value", line=line, text=event.value, quoted=not event.implicit[0])

    def _entries(self, path: tuple[str, ...]) -> Mapping[str, _Node]:
        entries: dict[str, _Node] = {}
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


# Reading: tree to policy.


def _policy(root: _Node, errors: _Errors) -> PolicyFile:
    fields = _fields("", root, ("version", "defaults", "queries"), errors)
    if fields is None:
        return PolicyFile()
    version = fields.get("version")
    if version is None:
        errors.add(root.line, f"version is not there, but has to be: write version: {_VERSION}")
    elif version.kind != "value" or version.text != _VERSION:
        message = f"version is {version.shown()}, allowed is {_VERSION}: write version: {_VERSION}"
        errors.add(version.line, message)
    defaults, default_sharing = None, NOTHING_WANTED
    node = fields.get("defaults")
    if node is not None and _says_something(node):
        entries = _fields("defaults", node, (*_BOUNDS, *_SHARING), errors)
        if entries is not None:
            default_sharing = _sharing("defaults", entries, errors)
            defaults = _bounds_if_any("defaults", node, entries, WantedBounds(), errors)
    queries: dict[str, Mapping[str, WantedBounds]] = {}
    sharing: dict[str, WantedSharing] = {}
    if _says_something(fields.get("queries")):
        for name, node in (_fields("queries", fields["queries"], None, errors) or {}).items():
            bounds, shares = _query(_member("queries", name), node, defaults or WantedBounds(), errors)
            if bounds is not None:
                queries[name] = bounds
            if shares.says_something:
                sharing[name] = shares
    return PolicyFile(defaults=defaults, queries=queries, default_sharing=default_sharing, sharing=sharing)


def _says_something(node: _Node | None) -> bool:
    """Say whether there is more than a heading whose lines are all commented out."""
    return node is not None and not node.is_empty


def _query(
    path: str, node: _Node, defaults: WantedBounds, errors: _Errors
) -> tuple[Mapping[str, WantedBounds] | None, WantedSharing]:
    """Read what is said of one query: bounds by vertex, None if there are none, and how it shares slots."""
    fields = _fields(path, node, ("vertices", *_BOUNDS, *_SHARING), errors)
    if fields is None:
        return None, NOTHING_WANTED
    shares = _sharing(path, fields, errors)
    if "vertices" not in fields:
        bounds = _bounds_if_any(path, node, fields, defaults, errors)
        return None if bounds is None else {SHUFFLE: bounds}, shares
    for name in _BOUNDS:
        if name in fields:
            where = _member(path, name)
            message = f"{where} is beside vertices, allowed is one of the two: move it to vertices.{SHUFFLE}"
            errors.add(fields[name].line, message)
    path = _member(path, "vertices")
    vertices: dict[str, WantedBounds] = {}
    for vertex, inner in (_fields(path, fields["vertices"], None, errors) or {}).items():
        if vertex != SHUFFLE and not re.fullmatch(r"source-\d+", vertex, re.ASCII):
            errors.add(inner.line, _unknown(_member(path, vertex), vertex, (SHUFFLE, "source-0"), "vertex"))
        entries = _fields(_member(path, vertex), inner, (*_BOUNDS, _GROUP), errors)
        if entries is None:
            continue
        group = _sharing(_member(path, vertex), entries, errors).group
        if group is not None:
            shares = evolve(shares, groups={**shares.groups, vertex: group})
        wanted = _bounds_if_any(_member(path, vertex), inner, entries, defaults, errors)
        if wanted is not None:
            vertices[vertex] = wanted
    return vertices, shares


def _sharing(path: str, fields: Mapping[str, _Node], errors: _Errors) -> WantedSharing:
    """Read how a query shares slots; what is wrong is left out."""
    wanted = NOTHING_WANTED
    for name in [name for name in _SHARING if name in fields]:
        node = fields[name]
        plain = node.kind == "value" and (name == _GROUP or not node.quoted)
        found = read(name, node.text) if plain else None
        if found is None:
            allowed, example = what_is_allowed(name)
            where = f"{path}.{name} is {node.shown()}"
            errors.add(node.line, f"{where}, allowed is {allowed}: write {name}: {example}")
        else:
            wanted = found.over(wanted)
    return wanted


def _bounds_if_any(
    path: str, node: _Node, fields: Mapping[str, _Node], defaults: WantedBounds, errors: _Errors
) -> WantedBounds | None:
    """Read a pair of bounds, None where something else is said and no bound."""
    if fields and not any(name in fields for name in _BOUNDS):
        return None
    return _bounds_of(path, node, fields, defaults, errors)


def _bounds_of(
    path: str, node: _Node, fields: Mapping[str, _Node], defaults: WantedBounds, errors: _Errors
) -> WantedBounds:
    """Read a pair of bounds; what is left out is that of `defaults`."""
    if not fields:
        errors.add(
            node.line, f"{path} is empty, allowed is lowerBound and upperBound: write one or remove it"
        )
    lower = _bound(path, "lowerBound", fields, defaults.lower, errors)
    upper = _bound(path, "upperBound", fields, defaults.upper, errors)
    if lower is None or upper is None:
        return defaults
    if NO_BOUND != upper < lower:
        said = {name: "" if name in fields else " of the defaults" for name in _BOUNDS}
        message = (
            f"{path}.lowerBound is {lower}{said['lowerBound']}, allowed is up to upperBound, "
            f"{upper}{said['upperBound']}: write {upper} or less"
        )
        errors.add(fields.get("lowerBound", fields.get("upperBound", node)).line, message)
    return WantedBounds(lower=lower, upper=upper)


def _bound(path: str, name: str, fields: Mapping[str, _Node], default: int, errors: _Errors) -> int | None:
    """Read one bound, None if it is not one."""
    node = fields.get(name)
    if node is None:
        return default
    if node.kind == "value" and not node.quoted and _WHOLE.fullmatch(node.text):
        value = int(node.text)
        if value <= MAX_PARALLELISM:
            return value
    suggestion = 1 if name == "lowerBound" else NO_BOUND
    if _WHOLE.fullmatch(node.text):
        suggestion = min(int(node.text), MAX_PARALLELISM)
    message = f"{path}.{name} is {node.shown()}, allowed is {_ALLOWED_BOUND}: write {name}: {suggestion}"
    errors.add(node.line, message)
    return None


def _fields(
    path: str, node: _Node, known: tuple[str, ...] | None, errors: _Errors
) -> Mapping[str, _Node] | None:
    """Return the entries of a mapping that are `known` (None: all of them), None if it is no mapping."""
    if node.kind != "mapping":
        allowed = "names with values" if known is None else ", ".join(known)
        message = f"{path or 'the file'} is {node.shown()}, allowed is a mapping of {allowed}"
        errors.add(node.line, f"{message}: write it indented below, or remove it" if path else message)
        return None
    if known is None:
        return node.entries
    for name, value in node.entries.items():
        if name not in known:
            errors.add(value.line, _unknown(_member(path, name), name, known, "field"))
    return {name: value for name, value in node.entries.items() if name in known}


def _unknown(path: str, name: str, known: tuple[str, ...], what: str) -> str:
    def likeness(candidate: str) -> float:
        return difflib.SequenceMatcher(None, name.lower()[:_LONGEST_TEXT], candidate.lower()).ratio()

    return f"{path} is no {what}, the nearest is {max(known, key=likeness)}: write that or remove it"


def _member(path: str, name: str) -> str:
    """Return the path of an entry; a name that could be taken for two or for a sentence is quoted."""
    shown = name if len(name) <= _LONGEST_TEXT and re.fullmatch(r"[\w-]+", name) else _quoted(name)
    return f"{path}.{shown}" if path else shown


def _path(names: Iterable[str]) -> str:
    return reduce(_member, names, "")


def _quoted(text: str) -> str:
    return f"'{text}'" if len(text) <= _LONGEST_TEXT else f"'{text[:_LONGEST_TEXT]}…'"
