"""Tests that the shim's vocabulary matches the core's: the same names, fields and types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import pytest

from spark_elastic.core.actions import AboutQuery, Decision, SourceLimit
from spark_elastic.core.batch.questions import QUESTION_TYPES
from spark_elastic.http.wsgi import HttpAnswer, HttpRequest
from spark_elastic.wire import ACTION_TYPES, EVENT_TYPES

CONTRACT = Path(__file__).parents[2] / "jvm-shim/src/main/scala/org/apache/spark/elastic/Contract.scala"
TEXT = CONTRACT.read_text(encoding="utf-8")

# Timers and requests from outside the driver never leave the Python runtime.
ONLY_IN_PYTHON = {
    "SetTimer",
    "CancelTimer",
    "TimerFired",
    "AskPolicy",
    "PolicyAnswered",
    "SavepointRequested",
    "CancelRequested",
    "RequirementsRequested",
    "RequirementsDropped",
    "PolicyFileChanged",
    "PolicyFileRefused",
}
# The parsers of greetings and packed numbers are written by hand.
ONLY_IN_SCALA = {"HelloRequest", "HelloReply", "PackedLongs"}
# Only one side may have these: the sender adds them, and the journal records the cause of an action.
ADDED = {"id", "at", "cause", "left_ms"}
ATOMS: Mapping[Any, str] = {
    str: "String",
    bool: "Boolean",
    float: "Double",
    bytes: "Array[Byte]",
    tuple[int, ...]: "PackedLongs",
    Decision: "JsonNode",  # the shim passes it on unread
}
# Values that can exceed 32 bits.
LONG = re.compile(r"(?:.*_)?(?:ms|bytes|rows)|bytes_per_second|at|started|joined|launched")


def snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


def of_the_shim(text: str = TEXT) -> dict[str, dict[str, str]]:
    """Return the fields of each case class of the contract with their types."""
    classes = re.findall(r"case class (\w+)\((.*?)\)\s", text, re.DOTALL)
    field = r"(\w+): (\w+(?:\[(?:[^\[\]]|\[[^\[\]]*\])*\])?)"
    return {
        name: {snake(key): either(snake(key), kind) for key, kind in re.findall(field, fields)}
        for name, fields in classes
    }


def either(field: str, kind: str) -> str:
    """Treat `Long` as `Int` where 32 bits would do: Python's `int` covers both."""
    return kind if LONG.fullmatch(field) else re.sub(r"\bLong\b", "Int", kind)


def scala(field: str, kind: Any) -> str:
    """Return how Contract.scala must write the type `kind` of a field."""
    arguments = get_args(kind)
    if kind in ATOMS:
        return ATOMS[kind]
    if kind is int:
        return "Long" if LONG.fullmatch(field) else "Int"
    if attrs.has(kind):
        return str(kind.__name__)
    origin = get_origin(kind)
    if origin is Literal and {type(value) for value in arguments} == {str}:
        return "String"
    if origin in (Union, UnionType) and len(arguments) == 2 and NoneType in arguments:
        (there,) = set(arguments) - {NoneType}
        return f"Option[{scala(field, there)}]"
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return f"Seq[{scala(field, arguments[0])}]"
    if origin is Mapping:
        return f"Map[{', '.join(scala(field, part) for part in arguments)}]"
    raise AssertionError(f"{field}: {kind} has no twin in Scala")


def with_parts(kinds: Iterable[type]) -> dict[str, type]:
    """Return classes by name, including the classes of their fields."""
    found: dict[str, type] = {}
    left = [kind for kind in kinds if kind.__name__ not in ONLY_IN_PYTHON]
    while left:
        kind = left.pop()
        if attrs.has(kind) and kind not in ATOMS:
            found[kind.__name__] = kind
            left += [part for hint in get_type_hints(kind).values() for part in (hint, *inside(hint))]
    return found


def inside(kind: Any) -> list[Any]:
    return [part for argument in get_args(kind) for part in (argument, *inside(argument))]


CORE = with_parts((*EVENT_TYPES, *ACTION_TYPES, *QUESTION_TYPES, HttpRequest, HttpAnswer))


def differences(text: str, name: str) -> dict[str, tuple[str | None, str | None]]:
    """Return, per field, the type in Contract.scala and the expected type."""
    shim = of_the_shim(text)[name]
    hints = get_type_hints(CORE[name])
    core = {field.name: scala(field.name, hints[field.name]) for field in attrs.fields(CORE[name])}
    # The policy process adds the slots to a question; the shim does not know them.
    added = ADDED | {"slots"} if CORE[name] in QUESTION_TYPES else ADDED
    fields = (shim.keys() | core.keys()) - (added - (shim.keys() & core.keys()))
    return {key: (shim.get(key), core.get(key)) for key in fields if shim.get(key) != core.get(key)}


@pytest.mark.parametrize("name", sorted(CORE))
def test_the_shim_has_it_with_the_same_fields(name: str) -> None:
    assert differences(TEXT, name) == {}


def test_parts_are_found_by_the_fields_that_have_them() -> None:
    assert with_parts(ACTION_TYPES)["SourceLimit"] is SourceLimit
    assert {"QueryFacts", "SourceFacts", "Failure", "FullestPartition", "StageWork"} < with_parts(
        EVENT_TYPES
    ).keys()


@pytest.mark.parametrize(
    ("name", "right", "wrong", "found"),
    [
        ("SourceLimit", "SourceLimit(rows: Long)", "SourceLimit(rows: Int)", {"rows": ("Int", "Long")}),
        ("Rescale", "partitions: Int", "partitions: String", {"partitions": ("String", "Int")}),
        ("Rescale", "partitions: Int", "count: Int", {"partitions": (None, "Int"), "count": ("Int", None)}),
        ("KeepText", "text: Option[String]", "text: String", {"text": ("String", "Option[String]")}),
        ("Snapshot", "Seq[QueryInfo]", "Seq[QueryFacts]", {"queries": ("Seq[QueryFacts]", "Seq[QueryInfo]")}),
        (
            "Snapshot",
            "conf: Map[String, String]",
            "conf: Map[String, Int]",
            {"conf": ("Map[String, Int]", "Map[String, String]")},
        ),
    ],
)
def test_a_wrong_type_is_found(
    name: str, right: str, wrong: str, found: dict[str, tuple[str | None, str | None]]
) -> None:
    before, case, after = TEXT.partition(f"case class {name}(")
    head, there, tail = (case + after).partition(right)
    assert there
    assert differences(before + head + wrong + tail, name) == found


def test_a_number_may_have_more_bits_than_it_needs() -> None:
    assert "batch: Long" in TEXT
    assert not differences(TEXT.replace("batch: Long", "batch: Int"), "QueryProgress")


def test_a_type_without_a_twin_is_named() -> None:
    with pytest.raises(AssertionError, match=r"name: .* has no twin in Scala"):
        scala("name", str | int)


def test_the_shim_has_no_other_event_or_action() -> None:
    kinds = re.findall(r"case class (\w+)\([^)]*\)\s+extends (?:Event|Action|AboutQuery|QueryOrder)\b", TEXT)
    assert set(kinds) == {cls.__name__ for cls in (*EVENT_TYPES, *ACTION_TYPES)} - ONLY_IN_PYTHON


def test_the_outcome_of_every_order_about_a_query_names_it() -> None:
    orders = [cls for cls in ACTION_TYPES if cls.__name__ not in ONLY_IN_PYTHON]
    about = {cls.__name__ for cls in orders if issubclass(cls, AboutQuery)}
    assert about == {cls.__name__ for cls in orders if "query" in attrs.fields_dict(cls)}
    assert about == set(re.findall(r"case class (\w+)\([^)]*\)\s+extends (?:AboutQuery|QueryOrder)\b", TEXT))
    assert "case order: AboutQuery => Some(order.query)" in TEXT


def test_the_shim_has_no_other_class() -> None:
    assert of_the_shim().keys() == CORE.keys() | ONLY_IN_SCALA
