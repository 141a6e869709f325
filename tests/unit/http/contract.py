"""Checks of answers against the API's own description."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema_rs

from spark_elastic.http.openapi import document


def check(method: str, path: str, status: int, headers: Mapping[str, str], text: str) -> None:
    """Raise AssertionError if the description lacks this answer or describes it differently."""
    if path == "/elastic/metrics" or status == 405 or method in ("HEAD", "OPTIONS"):
        return  # outside the description, or defined by HTTP itself
    assert headers["content-type"] == "application/json", headers
    value = json.loads(text)
    template = template_of(path)
    if template is None:
        assert status == 404
        validator("Errors").validate(value)
        return
    answers = document()["paths"][template][method.lower()]["responses"]
    assert str(status) in answers, f"{method} {path} answers {status}, which its description does not have"
    answer = answers[str(status)]
    validator(answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]).validate(value)
    for name in answer.get("headers", {}):
        assert name.lower() in headers, f"{method} {path} has no {name}"


def template_of(path: str) -> str | None:
    path = path.removesuffix("/")
    for template in document()["paths"]:
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return str(template)
    return None


@cache
def validator(schema: str) -> Any:
    components = document()["components"]
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"#/components/schemas/{schema}", "components": components}
    )
