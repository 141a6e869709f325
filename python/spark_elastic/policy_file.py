"""The policy file: bounds for queries by name, in YAML.

    version: 1
    defaults:              # for every query that is not named below
      upperBound: 8
    queries:
      counts:              # the query's name
        lowerBound: 2
        upperBound: 6
        target: 4          # partitions where no policy decides
      orders:
        vertices:          # the same in full
          shuffle: {lowerBound: 1, upperBound: -1}
          source-0: {upperBound: 4}     # most tasks that read its first source

A bound that is left out comes from the defaults; without a default there is no bound. In addition to bounds,
a query can have `priority`, `weight` and `slotSharingGroup`; a vertex can have a `slotSharingGroup` too. A
query can also have any setting that queries can override, such as `restartStrategy.type`. A name can be a
pattern: `orders-*`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Literal

import yaml
from attrs import evolve, field, frozen

from spark_elastic.core.bounds.declared import NO_BOUND, NOTHING_WANTED, WantedBounds, WantedSharing
from spark_elastic.core.bounds.requirements import SHUFFLE
from spark_elastic.core.events import PolicyFileChanged
from spark_elastic.core.keys import OF_QUERY, PER_QUERY, called_for_query, queries
from spark_elastic.core.keys.key import Key
from spark_elastic.query_settings import OwnSettings
from spark_elastic.settings_errors import wrong_part

# ---- The text of a policy file as a tree in which every value has its line, and the errors found in it.


MAX_SIZE = 1 << 20
"""The maximum size of a policy file, in bytes."""

VERSION = "1"
# No valid value is nested deeper, and deep input would only burden the parser.
_MAX_DEPTH = 8
_TOO_DEEP = "the file is nested too deeply here"
LONGEST_TEXT = 60

Kind = Literal["mapping", "list", "value"]


@frozen(kw_only=True)
class Node:
    """A value of the file; `text` is that of a plain value, `line` (from 1) that of the value or its name."""

    kind: Kind
    line: int
    text: str = ""
    quoted: bool = False
    entries: Mapping[str, Node] = field(factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the value is empty."""
        return self.kind == "value" and not self.quoted and self.text in ("", "~", "null")

    def shown(self) -> str:
        """Return what was found, shortened."""
        if self.kind != "value":
            return f"a {self.kind}"
        if self.is_empty:
            return "empty"
        return f"the text {quoted(self.text)}" if self.quoted else quoted(self.text)


class Errors:
    """The errors in a file, by line."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []

    def add(self, line: int, message: str) -> None:
        """Add an error in a line, 0 for the whole file."""
        self.found.append((line, message))

    def in_order(self) -> tuple[str, ...]:
        """Return a sentence for each error, by line."""
        found = sorted(self.found, key=lambda error: error[0])
        return tuple(f"line {line}: {message}" if line else message for line, message in found)


class _Unusable(Exception):
    """Parsing stops here, because the rest of the file cannot be understood."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str | bytes, errors: Errors) -> Node | None:
    """Return the only document of the file, or None if it cannot be understood."""
    try:
        return _document(_checked(text), errors)
    except _Unusable as error:
        errors.add(error.line, str(error))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        # libyaml has its own nesting limit, and reads ahead of the events that `_Builder` counts.
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
    # The parser written in C is twenty times faster, but not every installation has it.
    parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml.parse(text, Loader=parser), errors)
    return builder.document()


class _Builder:
    """Builds the tree from the parser's events, so that no object is constructed unchecked."""

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
    """Return the path of an entry; a name that is long or not a plain word is quoted."""
    shown = name if len(name) <= LONGEST_TEXT and re.fullmatch(r"[\w-]+", name) else quoted(name)
    return f"{path}.{shown}" if path else shown


def _path(names: Iterable[str]) -> str:
    return reduce(member, names, "")


def quoted(text: str) -> str:
    """Return a text in quotes, shortened if it is long."""
    return f"'{text}'" if len(text) <= LONGEST_TEXT else f"'{text[:LONGEST_TEXT]}…'"


_VERTICES = "vertices"


class PolicyFileError(ValueError):
    """An unusable policy file; `errors` has one sentence for each error."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


@frozen(kw_only=True)
class PolicyFile:
    """The content of a policy file; -1 means no bound.

    `queries` is by query name, or pattern of names, and vertex id. `defaults` is None if the file sets no
    bounds for other queries. `sharing` and `settings` are by query name; `default_sharing` and
    `default_settings` apply where these set nothing. Settings are text by setting name.
    """

    defaults: WantedBounds | None = None
    queries: Mapping[str, Mapping[str, WantedBounds]] = field(factory=dict)
    default_sharing: WantedSharing = NOTHING_WANTED
    sharing: Mapping[str, WantedSharing] = field(factory=dict)
    default_settings: Mapping[str, str] = field(factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(factory=dict)

    @classmethod
    def of(cls, event: PolicyFileChanged) -> PolicyFile:
        """Return the content that an event reports."""
        return cls(
            defaults=event.defaults,
            queries=event.bounds,
            default_sharing=event.default_sharing,
            sharing=event.sharing,
            default_settings=event.default_settings,
            settings=event.settings,
        )

    def event(self, id: str, at: int, path: str) -> PolicyFileChanged:
        """Return the event that the file at `path` has this content from `at` (epoch ms) on."""
        return PolicyFileChanged(
            id=id,
            at=at,
            path=path,
            defaults=self.defaults,
            bounds=self.queries,
            default_sharing=self.default_sharing,
            sharing=self.sharing,
            default_settings=self.default_settings,
            settings=self.settings,
        )


def load_policy(text: str | bytes) -> PolicyFile:
    """Parse a policy file. Raises PolicyFileError with every error found."""
    errors = Errors()
    root = parse(text, errors)
    policy = PolicyFile() if root is None else _policy(root, errors)
    if errors.found:
        raise PolicyFileError(errors.in_order())
    return policy


def _policy(root: Node, errors: Errors) -> PolicyFile:
    fields = _fields("", root, ("version", "defaults", "queries"), errors)
    if fields is None:
        return PolicyFile()
    version = fields.get("version")
    if version is None:
        errors.add(root.line, f"version is not there, but has to be: write version: {VERSION}")
    elif version.kind != "value" or version.text != VERSION:
        message = f"version is {version.shown()}, allowed is {VERSION}: write version: {VERSION}"
        errors.add(version.line, message)
    defaults, usual = None, OwnSettings()
    node = fields.get("defaults")
    if node is not None and _says_something(node):
        entry = _Entry.read("defaults", node, queries.DECLARED, errors)
        if entry is not None:
            defaults, usual = entry.bounds(WantedBounds(), errors), entry.own
    bounds: dict[str, Mapping[str, WantedBounds]] = {}
    sharing: dict[str, WantedSharing] = {}
    settings: dict[str, Mapping[str, str]] = {}
    if _says_something(fields.get("queries")):
        for name, node in (_mapping("queries", fields["queries"], errors) or {}).items():
            path = member("queries", name)
            entry = _Entry.read(path, node, queries.DECLARED, errors, also=(_VERTICES,))
            if entry is None:
                continue
            if own := entry.own.texts:
                settings[name] = own
            vertices, shares = _query(entry, defaults or WantedBounds(), errors)
            if vertices is not None:
                bounds[name] = vertices
            if shares.says_something:
                sharing[name] = shares
    return PolicyFile(
        defaults=defaults,
        queries=bounds,
        default_sharing=usual.sharing,
        sharing=sharing,
        default_settings=usual.texts,
        settings=settings,
    )


def _says_something(node: Node | None) -> bool:
    """Return whether there is more than a heading with all its lines commented out."""
    return node is not None and not node.is_empty


@frozen
class _Entry:
    """An entry of the file with settings: its values, the line of each, and its other fields."""

    path: str
    node: Node
    own: OwnSettings
    lines: Mapping[Key[Any], int]
    rest: Mapping[str, Node]

    @classmethod
    def read(
        cls, path: str, node: Node, declared: Sequence[Key[Any]], errors: Errors, *, also: Sequence[str] = ()
    ) -> _Entry | None:
        """Read what an entry says, or return None if it is no mapping.

        `declared` are the keys of `core/keys/queries.py` that it may have, and `also` its other fields. A
        whole query has all that is declared, and may have settings of the application as well.
        """
        of_query = queries.PRIORITY in declared
        known = (*also, *(key.name for key in declared))
        entries = _mapping(path, node, errors, known)
        if entries is None:
            return None
        entry = cls(path, node, OwnSettings(), lines := {}, rest := {})
        for name, inner in entries.items():
            key = called_for_query(name)
            where = member(path, name)
            if name in also:
                rest[name] = inner
            elif key is None or (key not in declared and (key.name in OF_QUERY or not of_query)):
                meant = (*known, *PER_QUERY) if of_query else known
                errors.add(inner.line, _unknown(where, name, meant, "field"))
            else:
                lines[key] = inner.line
                if (wrong := _wrong(entry.own, key, where, inner)) is not None:
                    errors.add(inner.line, wrong)
        for problem in entry.own.contradictions(prefix=f"{path}."):
            errors.add(node.line, problem)
        return entry

    def bounds(self, usual: WantedBounds, errors: Errors) -> WantedBounds | None:
        """Return the bounds, what is missing from `usual`, or None if the entry has other fields alone."""
        if self.node.entries and not any(key in self.lines for key in queries.BOUNDS):
            return None
        if not self.node.entries:
            message = f"{self.path} is empty, allowed is lowerBound and upperBound: write one or remove it"
            errors.add(self.node.line, message)
        if not all(key in self.own.values for key in queries.BOUNDS if key in self.lines):
            return usual
        wanted = self.own.bounds(usual)
        if NO_BOUND != wanted.upper < wanted.lower:
            said = ["" if key in self.lines else " of the defaults" for key in queries.BOUNDS]
            message = (
                f"{self.path}.lowerBound is {wanted.lower}{said[0]}, allowed is up to upperBound, "
                f"{wanted.upper}{said[1]}: write {wanted.upper} or less"
            )
            errors.add(min(self.lines[key] for key in queries.BOUNDS if key in self.lines), message)
        target = None if wanted.target == NO_BOUND else wanted.target
        better = wanted.nearest_target()
        if better is not None and queries.TARGET in self.lines:
            message = (
                f"{self.path}.target is {target}, allowed is what its bounds allow: write target: {better}"
            )
            errors.add(self.lines[queries.TARGET], message)
        return evolve(wanted, target=target if better is None else better)


def _wrong(own: OwnSettings, key: Key[Any], where: str, node: Node) -> str | None:
    """Add a setting, and return the error if it cannot be."""
    text = node.text.strip() if node.kind == "value" and not node.is_empty else None
    match own.add(key, where, text):
        case "of_application":
            return (
                f"{where} is of one query, allowed is {key.name} for the whole application only: "
                f"set {key.full_name} in the application's settings, and remove it here"
            )
        case "refused":
            found, allowed, better = wrong_part(key, text or "")
            return f"{where} is {node.shown()}{found}, allowed is {allowed}: write {key.name}: {better}"
        case "said_twice":
            before = key.format(own.values[key])
            return f"{where} is {node.shown()}, before it is {before}, allowed is one value: keep one"
    return None


def _query(
    entry: _Entry, defaults: WantedBounds, errors: Errors
) -> tuple[Mapping[str, WantedBounds] | None, WantedSharing]:
    """Read the entry of one query: bounds by vertex, None if there are none, and how it shares slots."""
    shares = entry.own.sharing
    if _VERTICES not in entry.rest:
        bounds = entry.bounds(defaults, errors)
        return None if bounds is None else {SHUFFLE: bounds}, shares
    for key in (key for key in queries.BOUNDS if key in entry.lines):
        where = f"{entry.path}.{key.name}"
        message = f"{where} is beside vertices, allowed is one of the two: move it to vertices.{SHUFFLE}"
        errors.add(entry.lines[key], message)
    path = member(entry.path, _VERTICES)
    vertices: dict[str, WantedBounds] = {}
    for vertex, inner in (_mapping(path, entry.rest[_VERTICES], errors) or {}).items():
        where = member(path, vertex)
        if vertex != SHUFFLE and not re.fullmatch(r"source-\d+", vertex, re.ASCII):
            errors.add(inner.line, _unknown(where, vertex, (SHUFFLE, "source-0"), "vertex"))
        of_shuffle = vertex == SHUFFLE
        one = _Entry.read(where, inner, queries.OF_SHUFFLE if of_shuffle else queries.OF_SOURCE, errors)
        if one is None:
            continue
        if (group := one.own.sharing.group) is not None:
            shares = evolve(shares, groups={**shares.groups, vertex: group})
        wanted = one.bounds(defaults if of_shuffle else evolve(defaults, target=None), errors)
        if wanted is not None:
            vertices[vertex] = wanted
    return vertices, shares


def _fields(path: str, node: Node, known: Sequence[str], errors: Errors) -> Mapping[str, Node] | None:
    """Return the entries of a mapping that are `known`, or None if it is no mapping."""
    entries = _mapping(path, node, errors, known)
    if entries is None:
        return None
    for name, value in entries.items():
        if name not in known:
            errors.add(value.line, _unknown(member(path, name), name, known, "field"))
    return {name: value for name, value in entries.items() if name in known}


def _mapping(
    path: str, node: Node, errors: Errors, known: Sequence[str] | None = None
) -> Mapping[str, Node] | None:
    """Return the entries of a mapping (of `known` fields, in an error), or None if it is none."""
    if node.kind == "mapping":
        return node.entries
    allowed = "names with values" if known is None else ", ".join(known)
    message = f"{path or 'the file'} is {node.shown()}, allowed is a mapping of {allowed}"
    errors.add(node.line, f"{message}: write it indented below, or remove it" if path else message)
    return None


def _unknown(path: str, name: str, known: Sequence[str], what: str) -> str:
    def likeness(candidate: str) -> float:
        return difflib.SequenceMatcher(None, name.lower()[:LONGEST_TEXT], candidate.lower()).ratio()

    return f"{path} is no {what}, the nearest is {max(known, key=likeness)}: write that or remove it"
