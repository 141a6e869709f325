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
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Literal

import yaml
from attrs import evolve, field, frozen

from spark_elastic.core.bounds.declared import (
    NO_BOUND,
    NOTHING_WANTED,
    WantedBounds,
    WantedSharing,
    read,
    what_is_allowed,
)
from spark_elastic.core.bounds.requirements import MAX_PARALLELISM, SHUFFLE
from spark_elastic.core.events import PolicyFileChanged
from spark_elastic.core.keys import PER_QUERY, called
from spark_elastic.query_settings import OwnSettings
from spark_elastic.settings_errors import wrong_part

# The text of a policy file as a tree in which every value has its line, and the errors found in it.


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


_ALLOWED_BOUND = f"a whole number from 1 to {MAX_PARALLELISM}, or -1 for no bound"
_WHOLE = re.compile(r"-1|[1-9][0-9]{0,8}", re.ASCII)
_BOUNDS = ("lowerBound", "upperBound")
_TARGET = "target"
_GROUP = "slotSharingGroup"
_SHARING = ("priority", "weight", _GROUP)


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
    defaults, default_sharing = None, NOTHING_WANTED
    default_settings: Mapping[str, str] = {}
    node = fields.get("defaults")
    if node is not None and _says_something(node):
        default_settings, node = _settings("defaults", node, errors)
        entries = _fields("defaults", node, (*_BOUNDS, _TARGET, *_SHARING), errors) if node else None
        if node is not None and entries is not None:
            default_sharing = _sharing("defaults", entries, errors)
            defaults = _bounds_if_any("defaults", node, entries, WantedBounds(), errors)
    queries: dict[str, Mapping[str, WantedBounds]] = {}
    sharing: dict[str, WantedSharing] = {}
    settings: dict[str, Mapping[str, str]] = {}
    if _says_something(fields.get("queries")):
        for name, node in (_fields("queries", fields["queries"], None, errors) or {}).items():
            path = member("queries", name)
            own, rest = _settings(path, node, errors)
            if own:
                settings[name] = own
            if rest is None:
                continue
            bounds, shares = _query(path, rest, defaults or WantedBounds(), errors)
            if bounds is not None:
                queries[name] = bounds
            if shares.says_something:
                sharing[name] = shares
    return PolicyFile(
        defaults=defaults,
        queries=queries,
        default_sharing=default_sharing,
        sharing=sharing,
        default_settings=default_settings,
        settings=settings,
    )


def _says_something(node: Node | None) -> bool:
    """Return whether there is more than a heading with all its lines commented out."""
    return node is not None and not node.is_empty


def _settings(path: str, node: Node, errors: Errors) -> tuple[Mapping[str, str], Node | None]:
    """Read the settings of a query; return them and the node's other entries, None if no others remain."""
    own = OwnSettings()
    rest: dict[str, Node] = {}
    for name, inner in node.entries.items():
        key = called(name)
        if key is None:
            rest[name] = inner
            continue
        where = member(path, name)
        text = inner.text.strip() if inner.kind == "value" and not inner.is_empty else None
        match own.add(key, where, text):
            case "of_application":
                message = (
                    f"{where} is of one query, allowed is {key.name} for the whole application only: "
                    f"set {key.full_name} in the application's settings, and remove it here"
                )
            case "refused":
                found, allowed, better = wrong_part(key, text or "")
                message = (
                    f"{where} is {inner.shown()}{found}, allowed is {allowed}: write {key.name}: {better}"
                )
            case "said_twice":
                before = own.texts[key.name]
                message = f"{where} is {inner.shown()}, before it is {before}, allowed is one value: keep one"
            case None:
                continue
        errors.add(inner.line, message)
    for problem in own.contradictions(prefix=f"{path}."):
        errors.add(node.line, problem)
    return own.texts, None if node.entries and not rest else evolve(node, entries=rest)


def _query(
    path: str, node: Node, defaults: WantedBounds, errors: Errors
) -> tuple[Mapping[str, WantedBounds] | None, WantedSharing]:
    """Read the entry of one query: bounds by vertex, None if there are none, and how it shares slots."""
    fields = _fields(path, node, ("vertices", *_BOUNDS, _TARGET, *_SHARING), errors)
    if fields is None:
        return None, NOTHING_WANTED
    shares = _sharing(path, fields, errors)
    if "vertices" not in fields:
        bounds = _bounds_if_any(path, node, fields, defaults, errors)
        return None if bounds is None else {SHUFFLE: bounds}, shares
    for name in (*_BOUNDS, _TARGET):
        if name in fields:
            where = member(path, name)
            message = f"{where} is beside vertices, allowed is one of the two: move it to vertices.{SHUFFLE}"
            errors.add(fields[name].line, message)
    path = member(path, "vertices")
    vertices: dict[str, WantedBounds] = {}
    for vertex, inner in (_fields(path, fields["vertices"], None, errors) or {}).items():
        if vertex != SHUFFLE and not re.fullmatch(r"source-\d+", vertex, re.ASCII):
            errors.add(inner.line, _unknown(member(path, vertex), vertex, (SHUFFLE, "source-0"), "vertex"))
        of_shuffle = vertex == SHUFFLE
        known = (*_BOUNDS, _TARGET, _GROUP) if of_shuffle else (*_BOUNDS, _GROUP)
        entries = _fields(member(path, vertex), inner, known, errors)
        if entries is None:
            continue
        group = _sharing(member(path, vertex), entries, errors).group
        if group is not None:
            shares = evolve(shares, groups={**shares.groups, vertex: group})
        usual = defaults if of_shuffle else evolve(defaults, target=None)
        wanted = _bounds_if_any(member(path, vertex), inner, entries, usual, errors)
        if wanted is not None:
            vertices[vertex] = wanted
    return vertices, shares


def _sharing(path: str, fields: Mapping[str, Node], errors: Errors) -> WantedSharing:
    """Read how a query shares slots; invalid values are skipped."""
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
    path: str, node: Node, fields: Mapping[str, Node], defaults: WantedBounds, errors: Errors
) -> WantedBounds | None:
    """Read a pair of bounds, or return None if the entry has other fields but no bound."""
    if fields and not any(name in fields for name in (*_BOUNDS, _TARGET)):
        return None
    return _bounds_of(path, node, fields, defaults, errors)


def _bounds_of(
    path: str, node: Node, fields: Mapping[str, Node], defaults: WantedBounds, errors: Errors
) -> WantedBounds:
    """Read a pair of bounds; a missing one is taken from `defaults`."""
    if not node.entries:
        errors.add(
            node.line, f"{path} is empty, allowed is lowerBound and upperBound: write one or remove it"
        )
    lower = _bound(path, "lowerBound", fields, defaults.lower, errors)
    upper = _bound(path, "upperBound", fields, defaults.upper, errors)
    target = _bound(path, _TARGET, fields, defaults.target or NO_BOUND, errors)
    if lower is None or upper is None or target is None:
        return defaults
    if NO_BOUND != upper < lower:
        said = {name: "" if name in fields else " of the defaults" for name in _BOUNDS}
        message = (
            f"{path}.lowerBound is {lower}{said['lowerBound']}, allowed is up to upperBound, "
            f"{upper}{said['upperBound']}: write {upper} or less"
        )
        errors.add(fields.get("lowerBound", fields.get("upperBound", node)).line, message)
    wanted = WantedBounds(lower=lower, upper=upper, target=None if target == NO_BOUND else target)
    better = wanted.nearest_target()
    if better is not None and _TARGET in fields:
        message = f"{path}.target is {target}, allowed is what its bounds allow: write target: {better}"
        errors.add(fields[_TARGET].line, message)
    return wanted if better is None else evolve(wanted, target=better)


def _bound(path: str, name: str, fields: Mapping[str, Node], default: int, errors: Errors) -> int | None:
    """Read one bound, or return None if it is invalid."""
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
    path: str, node: Node, known: tuple[str, ...] | None, errors: Errors
) -> Mapping[str, Node] | None:
    """Return the entries of a mapping that are `known` (None: all entries), or None if it is no mapping."""
    if node.kind != "mapping":
        allowed = "names with values" if known is None else ", ".join(known)
        message = f"{path or 'the file'} is {node.shown()}, allowed is a mapping of {allowed}"
        errors.add(node.line, f"{message}: write it indented below, or remove it" if path else message)
        return None
    if known is None:
        return node.entries
    meant = (*known, *PER_QUERY) if known[-1] in _SHARING else known
    for name, value in node.entries.items():
        if name not in known:
            errors.add(value.line, _unknown(member(path, name), name, meant, "field"))
    return {name: value for name, value in node.entries.items() if name in known}


def _unknown(path: str, name: str, known: tuple[str, ...], what: str) -> str:
    def likeness(candidate: str) -> float:
        return difflib.SequenceMatcher(None, name.lower()[:LONGEST_TEXT], candidate.lower()).ratio()

    return f"{path} is no {what}, the nearest is {max(known, key=likeness)}: write that or remove it"
