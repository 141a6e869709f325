"""The reference of the REST API, generated from the OpenAPI description that the driver serves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spark_elastic.http.openapi import document

_METHODS = ("get", "put", "post", "delete")
Json = Mapping[str, Any]


def operations() -> str:
    """Describe each operation with its parameters, bodies and refusals, then each schema."""
    described = document()
    paths: Json = described["paths"]
    rows = [
        f"| `{method.upper()} {path}` | {_cell(item[method]['summary'])} | {_parameters(item, method)} | "
        f"{_body(item[method])} | {_answer(item[method])} | {_refusals(item[method])} |"
        for path, item in paths.items()
        for method in _METHODS
        if method in item
    ]
    head = "| operation | | parameters | body | answer | may be refused with |\n|---|---|---|---|---|---|"
    codes = "\n".join(f"| {code} | {_cell(text)} |" for code, text in sorted(_meanings(paths).items()))
    schemas = "\n\n".join(
        _schema(name, schema) for name, schema in described["components"]["schemas"].items()
    )
    return "\n\n".join(
        (
            "## Operations",
            "\n".join((head, *rows)),
            "### Status codes of refusals",
            f"| code | |\n|---|---|\n{codes}",
            "## Schemas",
            schemas,
        )
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _parameters(item: Json, method: str) -> str:
    own = item[method].get("parameters", ())
    return ", ".join(f"`{p['name']}`" for p in own if p["in"] != "path")


def _body(operation: Json) -> str:
    body = operation.get("requestBody")
    return "" if body is None else _linked(body["content"]["application/json"]["schema"])


def _answers(operation: Json) -> Iterator[tuple[int, Json]]:
    return ((int(code), answer) for code, answer in operation["responses"].items())


def _answer(operation: Json) -> str:
    (code, answer) = next((code, answer) for code, answer in _answers(operation) if code < 300)
    return f"{code} {_linked(answer['content']['application/json']['schema'])}"


def _refusals(operation: Json) -> str:
    return ", ".join(str(code) for code, _ in sorted(_answers(operation)) if code >= 400)


def _meanings(paths: Json) -> dict[int, str]:
    operations = (item[method] for item in paths.values() for method in _METHODS if method in item)
    return {
        code: answer["description"]
        for operation in operations
        for code, answer in _answers(operation)
        if code >= 400
    }


def _linked(schema: Json) -> str:
    name = schema["$ref"].rpartition("/")[2]
    return f"[{name}](#{name.lower()})"


def _schema(name: str, schema: Json) -> str:
    rows = list(_rows("", schema))
    parts = [f"### {name}", _doc(schema)]
    if rows:
        parts.append("\n".join(("| member | type | |", "|---|---|---|", *rows)))
    return "\n\n".join(part for part in parts if part)


def _rows(prefix: str, schema: Json) -> Iterator[str]:
    """Describe each member of an object, and the members of objects in it."""
    members: Json = schema.get("properties", {})
    for member, of in members.items():
        optional = "" if member in schema.get("required", ()) else "Optional. "
        yield f"| `{prefix}{member}` | {_type(of)} | {optional}{_doc(of)} |"
        inner = _inner(of)
        yield from _rows(
            f"{prefix}{member}{'[]' if inner.get('type') == 'array' else ''}.", _inner(inner, "items")
        )
    patterns: Json = schema.get("patternProperties", {})
    for pattern, of in patterns.items():
        yield f"| any that matches `{_cell(pattern)}` | {_type(of)} | {_doc(of)} |"
        yield from _rows("….", of)


def _inner(schema: Json, of: str | None = None) -> Json:
    """Return a schema without null, or the schema of a list's items."""
    if of is not None:
        inner: Json = schema.get(of, schema)
        return inner
    choices = schema.get("anyOf", ())
    return next((choice for choice in choices if choice.get("type") != "null"), schema)


def _doc(schema: Json) -> str:
    texts = [_cell(str(schema[key])) for key in ("description",) if key in schema]
    inner = _inner(schema)
    if inner is not schema and "description" in inner and not texts:
        texts.append(_cell(str(inner["description"])))
    if "enum" in inner:
        texts.append("One of " + ", ".join(f"`{choice}`" for choice in inner["enum"]) + ".")
    return " ".join(texts)


def _type(schema: Json) -> str:
    if "$ref" in schema:
        return _linked(schema)
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
