"""The parts that JSON schemas of the API are made of."""

from __future__ import annotations

from typing import Any, get_args

from spark_elastic.rest.parameters import LARGEST

Schema = dict[str, Any]
"""A JSON schema, or a part of the API's description."""

TEXT: Schema = {"type": "string"}
INT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOL: Schema = {"type": "boolean"}
TIME: Schema = {"type": "integer", "description": "Epoch ms."}
MS: Schema = {"type": "integer", "description": "Milliseconds."}
COUNT: Schema = {"type": "integer", "minimum": 0}
WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST}


def or_null(schema: Schema) -> Schema:
    """Describe what may be missing."""
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(literal: Any) -> Schema:
    """Describe a text that is one of those of a literal type."""
    return {"type": "string", "enum": list(get_args(literal))}


def said(schema: Schema, description: str) -> Schema:
    """Describe what a schema's value means."""
    return {**schema, "description": description}


def list_(schema: Schema) -> Schema:
    """Describe a list of such values."""
    return {"type": "array", "items": schema}


def object_(optional: Schema | None = None, /, **members: Schema) -> Schema:
    """Describe an object that always has these members, may have `optional` ones, and no others."""
    return {
        "type": "object",
        "properties": {**members, **(optional or {})},
        "required": list(members),
        "additionalProperties": False,
    }


def ref(name: str) -> Schema:
    """Refer to one of the schemas by its name."""
    return {"$ref": f"#/components/schemas/{name}"}
