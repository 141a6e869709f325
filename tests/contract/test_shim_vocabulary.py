"""The shim's vocabulary is the core's: the same names, with the same fields."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from spark_elastic.core import actions, events
from spark_elastic.core.action_types import ACTION_TYPES
from spark_elastic.core.batch_events import BatchStage
from spark_elastic.core.event_types import EVENT_TYPES
from spark_elastic.core.source_read import FullestPartition, SourceRead
from spark_elastic.core.stage_work import StageWork
from spark_elastic.core.task_events import NewExecutor

CONTRACT = Path(__file__).parents[2] / "jvm-shim/src/main/scala/org/apache/spark/elastic/Contract.scala"

# The runtime keeps to itself: its timers, and what is asked of it by others than the driver.
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
PARTS = (
    events.ExecutorInfo,
    events.SourceFacts,
    events.QueryFacts,
    events.Failure,
    events.QueryInfo,
    events.OffsetsBehind,
    FullestPartition,
    SourceRead,
    NewExecutor,
    StageWork,
    BatchStage,
    actions.SourceBounds,
)
# The sender counts events and gives them their time, and what has caused an action is the journal's business.
ADDED = {"id", "at", "cause"}


def snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


def of_the_shim() -> dict[str, set[str]]:
    """Return the fields of each case class of the contract."""
    classes = re.findall(r"case class (\w+)\((.*?)\)\s", CONTRACT.read_text(encoding="utf-8"), re.DOTALL)
    return {name: {snake(field) for field in re.findall(r"(\w+):", fields)} for name, fields in classes}


def of_the_core() -> dict[str, set[str]]:
    kinds = (*EVENT_TYPES, *ACTION_TYPES, *PARTS)
    return {cls.__name__: {field.name for field in attrs.fields(cls)} for cls in kinds}


@pytest.mark.parametrize("name", sorted(set(of_the_core()) - ONLY_IN_PYTHON))
def test_the_shim_has_it_with_the_same_fields(name: str) -> None:
    assert of_the_shim()[name] - ADDED == of_the_core()[name] - ADDED


def test_the_shim_has_no_other_event_or_action() -> None:
    text = CONTRACT.read_text(encoding="utf-8")
    kinds = re.findall(r"case class (\w+)\([^)]*\)\s+extends (?:Event|Action|AboutQuery|QueryOrder)\b", text)
    known = {cls.__name__ for cls in (*EVENT_TYPES, *ACTION_TYPES)}
    assert set(kinds) == known - ONLY_IN_PYTHON


def test_the_outcome_of_every_order_about_a_query_names_it() -> None:
    orders = [cls for cls in ACTION_TYPES if cls.__name__ not in ONLY_IN_PYTHON]
    about = {cls.__name__ for cls in orders if issubclass(cls, actions.AboutQuery)}
    assert about == {cls.__name__ for cls in orders if "query" in attrs.fields_dict(cls)}
    text = CONTRACT.read_text(encoding="utf-8")
    assert about == set(re.findall(r"case class (\w+)\([^)]*\)\s+extends (?:AboutQuery|QueryOrder)\b", text))
    assert "case order: AboutQuery => Some(order.query)" in text
