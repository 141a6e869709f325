"""What is said once of each setting: its name, the kind of its values, default and sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs
from attrs import frozen

from spark_elastic.core.keys.kinds import NONE, Kind

PREFIX = "spark.elastic."

Value = TypeVar("Value", covariant=True)


@frozen(eq=False)
class Key(Generic[Value]):
    """One setting; `name` is without the prefix, `aliases` are its older names.

    `default` is that of reactive mode, `adaptive` that of adaptive mode.
    """

    name: str
    kind: Kind[Value]
    default: Value
    doc: str
    aliases: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    adaptive: Value = attrs.field(kw_only=True)

    @adaptive.default
    def _same_in_both_modes(self) -> Value:
        return self.default

    @property
    def full_name(self) -> str:
        """Return the canonical spelling."""
        return PREFIX + self.name

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
