"""The building blocks of the API's answers: each is a JSON schema, and says how a value is written in it.

A member of an object is declared once, with its schema and where its value comes from. The bodies and the
OpenAPI description both follow from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar, get_args

from attrs import field, frozen

Schema = dict[str, Any]
"""A JSON schema, or another part of the API's description."""

Json = dict[str, Any]

T = TypeVar("T")
V = TypeVar("V", contravariant=True)


def as_it_is(value: Any) -> Any:
    """Return the value, which is JSON."""
    return value


@frozen
class Shape(Generic[V]):
    """The form of values of type V: its schema, and what writes a value as JSON.

    The schema of a shape with a `name` stands in the description under this name; others refer to it.
    """

    described: Schema
    json: Callable[[V], Any] = field(default=as_it_is)
    name: str = ""

    @property
    def schema(self) -> Schema:
        """The schema as another one contains it."""
        return {"$ref": f"#/components/schemas/{self.name}"} if self.name else self.described

    def of(self, value: Callable[[T], V], description: str = "") -> Member[T]:
        """Declare a member of this shape, whose value comes from a T."""
        own = {"description": description} if description else {}
        return Member(Shape({**self.schema, **own}, self.json), value)

    def may(self, value: Callable[[T], V | None]) -> Member[T]:
        """Declare a member that is left out where its value is None."""
        return Member(self, value, optional=True)


@frozen
class Member(Generic[V]):
    """A member of an object that is made from a V."""

    shape: Shape[Any]
    value: Callable[[V], Any]
    optional: bool = False


TEXT = Shape[str]({"type": "string"})
INT = Shape[int]({"type": "integer"})
NUMBER = Shape[float]({"type": "number"})
BOOL = Shape[bool]({"type": "boolean"})
TIME = Shape[int]({"type": "integer", "description": "Epoch ms."})
MS = Shape[int]({"type": "integer", "description": "Milliseconds."})
COUNT = Shape[int]({"type": "integer", "minimum": 0})


def said(shape: Shape[T], description: str) -> Shape[T]:
    """Return a shape with a description of its values, wherever they are."""
    return Shape({**shape.described, "description": description}, shape.json, shape.name)


def or_null(shape: Shape[T]) -> Shape[T | None]:
    """Return a shape that is null for None."""
    schema, json = {"anyOf": [shape.schema, {"type": "null"}]}, shape.json
    return Shape(schema, json if json is as_it_is else lambda value: None if value is None else json(value))


def choice(*texts: str) -> Shape[str]:
    """Return the shape of a text that is one of these."""
    return Shape({"type": "string", "enum": list(texts)})


def one_of(literal: Any) -> Shape[str]:
    """Return the shape of a text that is one of a literal type's values."""
    return choice(*get_args(literal))


def list_(shape: Shape[T]) -> Shape[Iterable[T]]:
    """Return the shape of a list of such values."""
    schema, json = {"type": "array", "items": shape.schema}, shape.json
    return Shape(schema, list if json is as_it_is else lambda values: [json(one) for one in values])


def map_(shape: Shape[T], description: str, keys: Shape[str] | None = None) -> Shape[Mapping[str, T]]:
    """Return the shape of an object that has such values under any names, or under names that are `keys`."""
    return Shape(
        {
            "type": "object",
            "description": description,
            **({} if keys is None else {"propertyNames": keys.schema}),
            "additionalProperties": shape.schema,
        },
        lambda values: {key: shape.json(value) for key, value in values.items()},
    )


class Object(Shape[V]):
    """An object that is made from a V: it has all members that are not optional, and no others."""

    def __init__(self, name: str = "", /, **members: Member[V]) -> None:
        described: Schema = {
            "type": "object",
            "properties": {key: member.shape.schema for key, member in members.items()},
            "required": [key for key, member in members.items() if not member.optional],
            "additionalProperties": False,
        }
        # A list of a thousand queries has 25,000 members, most of them written as they are.
        steps = []
        for key, member in members.items():
            json = or_null(member.shape).json if member.optional else member.shape.json
            steps.append((key, member.value, None if json is as_it_is else json))
        optional = [key for key, member in members.items() if member.optional]

        def write(of: V) -> Json:
            made = {key: value(of) if json is None else json(value(of)) for key, value, json in steps}
            for key in optional:
                if made[key] is None:
                    del made[key]
            return made

        super().__init__(described, write, name)
