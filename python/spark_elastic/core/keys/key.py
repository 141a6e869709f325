"""What is said once of each setting: its name, the kind of its values, default and sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar

import attrs
from attrs import frozen

from spark_elastic.core.keys.kinds import NONE, Kind

PREFIX = "spark.elastic."

Value = TypeVar("Value", covariant=True)
View = TypeVar("View", bound=attrs.AttrsInstance)


PerQuery = Literal["always", "start"]


@frozen(eq=False)
class Key(Generic[Value]):
    """One setting; `name` is without the prefix, `aliases` are its older names.

    `default` is that of reactive mode, `adaptive` that of adaptive mode. `per_query` says whether a query can
    have a value of its own, and when another one counts: "always" from its next decision on, "start" when it
    is started the next time. None: there is one value for the whole application.
    """

    name: str
    kind: Kind[Value]
    default: Value
    doc: str
    aliases: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    per_query: PerQuery | None = attrs.field(default=None, kw_only=True)
    adaptive: Value = attrs.field(kw_only=True)

    @adaptive.default
    def _same_in_both_modes(self) -> Value:
        return self.default

    @property
    def full_name(self) -> str:
        """Return the canonical spelling."""
        return PREFIX + self.name

    @property
    def by_mode(self) -> bool:
        """Whether the default is another one in each mode."""
        return bool(self.default != self.adaptive)

    def format(self, value: Any) -> str:
        """Return `value` as a user would type it."""
        return NONE if value is None else self.kind.format(value)


_METADATA = "key"


def of(key: Key[Value], validator: Callable[[Any, Any, Any], Any] | None = None) -> Value:
    """Declare the field of a class of settings that holds the value of `key`, with its default."""
    # It says, as attrs' own field() does, that it returns what the field will hold.
    value: Value = attrs.field(default=key.default, validator=validator, metadata={_METADATA: key})
    return value


def key_of(field: attrs.Attribute[Any]) -> Key[Any] | None:
    """Return the key whose value a field holds, None if it holds something else."""
    key: Key[Any] | None = field.metadata.get(_METADATA)
    return key


def view_of(view: type[View], values: Mapping[Key[Any], Any], **others: Any) -> View:
    """Fill the fields of `view` that hold the value of a key; `others` count more."""
    return view(**{**fields_of(view, values), **others})


def fields_of(view: type[attrs.AttrsInstance], values: Mapping[Key[Any], Any]) -> dict[str, Any]:
    """Return the fields of `view` that hold the value of one of these keys, by name, with their values."""
    keys = {field.name: key_of(field) for field in attrs.fields(view)}
    return {name: values[key] for name, key in keys.items() if key is not None and key in values}
