"""Tests of the advice on two recorded runs of plain Spark: as text, as data, and as a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from spark_elastic.policy_file import load_policy
from spark_elastic.settings import load
from spark_elastic_lab.advice.advice import Advice, advise
from spark_elastic_lab.advice.data import as_data
from spark_elastic_lab.advice.page import as_page
from spark_elastic_lab.advice.text import as_text
from spark_elastic_lab.advice.told import Told
from spark_elastic_lab.advice.what_if import TooLittle
from tests.unit.lab.advice.facts import told_of

DOCS = Path(__file__).parents[4] / "docs" / "advise.md"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def stream() -> Advice:
    told, stages = told_of("stream")
    return advise(told, stages, log="stream", price=0.05)


@pytest.fixture(scope="module")
def batch() -> Advice:
    told, stages = told_of("batch")
    return advise(told, stages, log="batch")


def test_a_stream_has_its_facts(stream: Advice) -> None:
    (query,) = stream.queries
    assert (query.name, query.partitions, query.tasks, query.stateful) == ("counts", 16, 16, True)
    assert stream.slots == stream.executors == (2, 2, 2)
    assert query.state_rows == 50
    assert query.state_rows_per_partition == pytest.approx(50 / 16)
    assert {"too_many_partitions", "small_state"} <= {one.code for one in query.findings}
    assert query.rows == pytest.approx(200 * stream.hours * 3_600, rel=0.4)


def test_it_is_simulated_with_costs_that_explain_it(stream: Advice) -> None:
    assert stream.what_if is not None
    (cost,) = stream.what_if.costs.values()
    assert cost.error < 0.25
    assert cost.cost.task_ms > 1
    outcomes = {one.policy: one for one in stream.what_if.outcomes}
    was, reactive = outcomes["recorded"], outcomes["reactive"]
    assert was.executor_hours == pytest.approx(stream.executor_hours, rel=0.01)
    assert reactive.executors == was.executors
    assert reactive.batch_ms["counts"] < was.batch_ms["counts"]
    # Two slots do what one can, and autoscale finds that out.
    assert outcomes["autoscale"].executor_hours <= was.executor_hours * 1.05


def test_a_trigger_that_is_given_counts() -> None:
    told, stages = told_of("stream")
    found = advise(told, stages, log="stream", triggers={"counts": 0.5}, objective_s=7)
    (query,) = found.queries
    assert (query.trigger.interval_ms, query.trigger.known) == (500, "given")
    assert not any("trigger" in text for text in query.unsure)
    assert found.what_if is not None
    assert found.what_if.objective_s == 7


def test_too_little_is_not_simulated_and_says_why() -> None:
    told, stages = told_of("stream")
    (query,) = told.queries.values()
    del query.batches[6:]
    found = advise(told, stages, log="stream")
    assert found.what_if is None
    assert found.why_not == "counts has fewer than 8 micro-batches after its first ones"
    assert any("6 micro-batches are few" in text for text in found.queries[0].unsure)
    assert "No what-if: counts has fewer than 8" in as_text(found, None)
    with pytest.raises(TooLittle, match="no event with a time"):
        advise(Told(on_stage=stages.add), stages, log="empty")


def test_batch_stages_have_the_counts_of_our_rules(batch: Advice) -> None:
    assert batch.queries == ()
    assert batch.why_not == "no streaming query has committed a micro-batch"
    worst = batch.batch.worst[0]
    assert (worst.tasks, worst.kinds) == (200, ("too_many",))
    assert worst.wanted is not None
    assert worst.wanted < 20
    assert "200 tasks for" in as_text(batch, None)


def test_the_text_fits_and_has_what_can_be_copied(stream: Advice, batch: Advice) -> None:
    lines = {"spark.plugins": "p", "spark.elastic.schedulerMode": "reactive"}
    for advice in (stream, batch):
        text = as_text(advice, lines)
        assert max(map(len, text.splitlines())) <= 110
        settings = text.partition("spark-defaults.conf:\n")[2].partition("\n\n")[0]
        load(dict(line.split() for line in settings.splitlines()))
    assert stream.proposal.policy_file is not None
    assert load_policy(stream.proposal.policy_file).queries["counts"]["shuffle"].lower == 1
    assert "cost" in as_text(stream, lines)


def test_every_field_of_the_data_is_documented(stream: Advice, batch: Advice) -> None:
    described = set(re.findall(r"`([A-Za-z0-9]+)(?:\[\])?`", DOCS.read_text(encoding="utf-8")))
    described |= set(re.findall(r"[.`]([A-Za-z0-9]+)(?:\[\])?`", DOCS.read_text(encoding="utf-8")))
    for advice in (stream, batch):
        names = set(_names(as_data(advice, None)))
        assert names - described == set()


_BY_NAME = {"costs", "upperBounds", "medianBatchMs", "settings", "numbers"}


def _names(data: Any) -> Iterator[str]:
    """Yield the names of fields; those below some fields are names of queries or settings."""
    if isinstance(data, list):
        for one in data:
            yield from _names(one)
    elif isinstance(data, dict):
        for name, value in data.items():
            yield name
            if name not in _BY_NAME:
                yield from _names(value)
            elif name == "costs":
                yield from _names(list(value.values()))


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta",):
            self.open.append(tag)
        self.loaded += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "srcset", "data")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone_and_is_well_formed(stream: Advice, batch: Advice) -> None:
    text = as_page([stream, batch], None)
    page = _Page()
    page.feed(text)
    assert page.open == page.loaded == []
    assert "script" not in page.tags
    assert page.tags.count("svg") >= 4
    assert "url(" not in text
    assert "@import" not in text


def test_names_cannot_break_the_page(stream: Advice) -> None:
    told, stages = told_of("stream")
    (query,) = told.queries.values()
    query.name = told.name = "<script>&\"'"
    text = as_page([advise(told, stages, log="stream")], None)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
