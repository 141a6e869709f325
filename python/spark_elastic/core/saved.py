"""Conversion of an object of the core, with everything reachable from it, to plain data and back.

The output is ready for JSON: an object with the fields of each attrs class, without those that are None.
Where objects of several classes are possible, each names its class in ``type``. Reading restores exactly what
was written: nothing is recomputed and no initializer runs.

New classes and fields are found by their types. Building the codec fails if something cannot be written; the
tests build it. The *form* is a fingerprint of all classes and fields: a state in another form is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

T = TypeVar("T")

Plain = dict[str, Any]
"""A JSON object."""

_TYPE = "type"
_SCALARS = (str, int, float, bool)

_Write = Callable[[Any], Any]
_Read = Callable[[Any], Any]


class NotRestorable(ValueError):
    """This version cannot restore a saved state; the text gives the reason."""


class Codec(Generic[T]):
    """Writes and reads objects of the class `root`.

    `alternatives` names the classes that a field may hold where its type does not say it: for a protocol or a
    callable. For an abstract class these are all its subclasses. Raises TypeError for a field that cannot be
    written.
    """

    def __init__(self, root: type[T], alternatives: Mapping[Any, tuple[type, ...]]) -> None:
        self._alternatives = alternatives
        self._classes: dict[type, tuple[_Write, _Read]] = {}
        self._shape: list[str] = []
        self._write, self._read = self._coder(root)
        self.form = hashlib.sha256("\n".join(sorted(self._shape)).encode()).hexdigest()[:12]

    @property
    def classes(self) -> frozenset[type]:
        """All reachable classes."""
        return frozenset(self._classes)

    def encode(self, value: T) -> Plain:
        """Write an object. Raises TypeError for an object of a class that the types do not name."""
        return {"form": self.form, "of": self._write(value)}

    def decode(self, plain: Mapping[str, Any]) -> T:
        """Read an object. Raises NotRestorable."""
        try:
            form = plain["form"]
            if form != self.form:
                raise NotRestorable(f"its form is {form}, this version has form {self.form}")
            read: T = self._read(plain["of"])
        except NotRestorable:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise NotRestorable(f"it is not whole: {error!r}") from error
        return read

    def _coder(self, kind: Any) -> tuple[_Write, _Read]:
        if kind in self._alternatives:
            return self._tagged(self._alternatives[kind])
        if kind in _SCALARS:
            return _scalar((kind,))
        origin, args = get_origin(kind), get_args(kind)
        if origin is Literal:
            return _same, _one_of(args)
        if origin in (Union, UnionType):
            return self._union(args)
        if origin is not None and args:
            return self._collection(origin, args)
        if attrs.has(kind):
            return self._tagged(_concrete(kind)) if _is_abstract(kind) else self._class(kind)
        raise TypeError(f"{kind} cannot be saved")

    def _union(self, args: tuple[Any, ...]) -> tuple[_Write, _Read]:
        kinds = tuple(kind for kind in args if kind is not NoneType)
        if len(kinds) == 1:
            write, read = self._coder(kinds[0])
        elif all(kind in _SCALARS for kind in kinds):
            write, read = _scalar(kinds)
        else:
            write, read = self._tagged(kinds)
        return (write, read) if len(kinds) == len(args) else (_optional(write), _optional(read))

    def _collection(self, origin: Any, args: tuple[Any, ...]) -> tuple[_Write, _Read]:
        if issubclass(origin, Mapping):
            if args[0] is not str:
                raise TypeError(f"{args[0]} cannot be a key")
            write, read = self._coder(args[1])
            return _each_value(write), _each_value(read)
        if origin is tuple and args[-1] is not ...:
            coders = tuple(map(self._coder, args))
            return _by_place(list, [w for w, _ in coders]), _by_place(tuple, [r for _, r in coders])
        if origin not in (list, tuple, set, frozenset):
            raise TypeError(f"{origin} cannot be saved")
        write, read = self._coder(args[0])
        # The order of a set differs between processes.
        return _each(sorted if origin in (set, frozenset) else list, write), _each(origin, read)

    def _tagged(self, classes: tuple[Any, ...]) -> tuple[_Write, _Read]:
        coders = {cls.__name__: self._class(cls) for cls in classes}

        def write(value: Any) -> Any:
            name = type(value).__name__
            if name not in coders:
                raise TypeError(f"{name} is none of {', '.join(coders)}")
            return {_TYPE: name, **coders[name][0](value)}

        def read(plain: Any) -> Any:
            rest = dict(plain)
            return coders[rest.pop(_TYPE)][1](rest)

        return write, read

    def _class(self, cls: type) -> tuple[_Write, _Read]:
        known = self._classes.get(cls)
        if known is not None:
            return known
        hints = get_type_hints(cls)
        assert _TYPE not in hints
        fields = [(field.name, *self._coder(hints[field.name])) for field in attrs.fields(cls)]
        self._shape += (f"{cls.__name__}.{name}: {kind}" for name, kind in _as_written(cls))
        may_miss = {name for name, *_ in fields if _takes_none(hints[name])}
        names = {name for name, *_ in fields}
        put = object.__setattr__  # frozen classes have disabled their own

        def write(value: Any) -> Any:
            if type(value) is not cls:
                raise TypeError(f"{type(value).__name__} is not {cls.__name__}")
            plain = {}
            for name, write_field, _ in fields:
                held = getattr(value, name)
                if held is not None:
                    plain[name] = write_field(held)
            return plain

        def read(plain: Any) -> Any:
            if not (plain.keys() <= names and names - plain.keys() <= may_miss):
                raise NotRestorable(f"{cls.__name__} has other fields: {', '.join(plain)}")
            value: Any = object.__new__(cls)
            for name, _, read_field in fields:
                put(value, name, read_field(plain[name]) if name in plain else None)
            return value

        self._classes[cls] = write, read
        return write, read


def _as_written(cls: type) -> Iterator[tuple[str, str]]:
    """Return the fields with their types as written in the source.

    attrs holds the type in this form until it is resolved elsewhere.
    """
    kinds: dict[str, str] = {}
    for part in reversed(cls.__mro__[:-1]):
        kinds.update(part.__annotations__)
    return ((field.name, kinds[field.name]) for field in attrs.fields(cls))


def _is_abstract(kind: Any) -> bool:
    return bool(getattr(kind, "__abstractmethods__", None))


def _concrete(kind: Any) -> tuple[Any, ...]:
    """Return the concrete subclasses of an abstract class."""
    found: list[Any] = []
    for child in kind.__subclasses__():
        # To add slots, attrs creates a new class and leaves the first one behind, without fields of its own.
        if "__attrs_attrs__" in vars(child):
            found += _concrete(child) if _is_abstract(child) else [child]
    return tuple(found)


def _takes_none(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind)


def _same(value: Any) -> Any:
    return value


def _scalar(kinds: tuple[Any, ...]) -> tuple[_Write, _Read]:
    allowed = (*kinds, int) if float in kinds else kinds

    def read(value: Any) -> Any:
        if type(value) not in allowed:
            raise NotRestorable(f"{value!r} is not {' or '.join(kind.__name__ for kind in kinds)}")
        return value

    return _same, read


def _one_of(values: tuple[Any, ...]) -> _Read:
    def read(value: Any) -> Any:
        if value not in values:
            raise NotRestorable(f"{value!r} is none of {', '.join(map(repr, values))}")
        return value

    return read


def _optional(code: _Read) -> _Read:
    return lambda value: None if value is None else code(value)


def _each_value(code: _Read) -> _Read:
    return lambda values: {key: code(value) for key, value in values.items()}


def _each(collect: Callable[[Any], Any], code: _Read) -> _Read:
    return collect if code is _same else lambda values: collect(map(code, values))


def _by_place(collect: Callable[[Any], Any], codes: list[_Read]) -> _Read:
    return lambda values: collect(code(value) for code, value in zip(codes, values, strict=True))
