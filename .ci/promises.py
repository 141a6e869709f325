"""Tell what users may rely on: settings, the REST API, metrics, and the interface of custom policies.

usage: python .ci/promises.py  (before a release: writes it to tests/contract/golden/promises.json)

A test holds each commit against that file. Names may be added; what was promised may go, or get another type,
only with a new major version (before 1.0: a new minor one), for which the file is written anew.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".ci"))

from generated_docs import cells  # noqa: E402  # found by the line above
from metrics_page import known_metrics  # noqa: E402
from spark_elastic import policies  # noqa: E402
from spark_elastic.http.openapi import document  # noqa: E402
from spark_elastic.settings import markdown_table  # noqa: E402

FILE = ROOT / "tests" / "contract" / "golden" / "promises.json"
Names = Mapping[str, str]


def promises() -> dict[str, Names]:
    """Return all names by subject, each with its type or kind."""
    return {
        "settings": dict(_settings()),
        "rest": {**dict(_operations()), **dict(_fields())},
        "metrics": {metric.name: metric.kind for metric in known_metrics()},
        "policies": dict(_policies()),
    }


def broken(before: Mapping[str, Names], now: Mapping[str, Names]) -> list[str]:
    """Return a sentence for each name that is gone or has another type."""
    gone = [
        f"{subject}: {name} is gone"
        for subject, names in before.items()
        for name in names
        if name not in now.get(subject, {})
    ]
    others = [
        f"{subject}: {name} was {kind}, is {now[subject][name]}"
        for subject, names in before.items()
        for name, kind in names.items()
        if now.get(subject, {}).get(name, kind) != kind
    ]
    return gone + others


def _settings() -> Iterator[tuple[str, str]]:
    for row in markdown_table().splitlines()[2:]:
        _, name, kind, *_ = cells(row)
        values = [value.strip("`") for value in kind.split(" \\| ")]
        yield name.strip("`"), kind if len(values) == 1 else "a choice"
        if len(values) > 1:
            yield from ((f"{name.strip('`')} {value}", "a value") for value in values)


def _operations() -> Iterator[tuple[str, str]]:
    for path, item in document()["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield (
                    f"{method.upper()} {path}",
                    " ".join(sorted(c for c in operation["responses"] if c < "3")),
                )


def _fields() -> Iterator[tuple[str, str]]:
    for schema, description in document()["components"]["schemas"].items():
        for name, field in description.get("properties", {}).items():
            yield f"{schema}.{name}", _type(field)


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "items" in schema:
        return f"array of {_type(schema['items'])}"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _policies() -> Iterator[tuple[str, str]]:
    for name in policies.__all__:
        exported = getattr(policies, name)
        yield name, "type"
        if attrs.has(exported):
            # As they are written: attrs knows resolved types once something has asked for them.
            written = {k: v for base in exported.__mro__ for k, v in inspect.get_annotations(base).items()}
            for field in attrs.fields(exported):
                yield f"{name}.{field.name}", str(written[field.name])


if __name__ == "__main__":
    FILE.write_text(json.dumps(promises(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
