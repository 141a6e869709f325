"""Tests of the metrics: their values, and that they follow Prometheus' conventions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest
from attrs import evolve
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from spark_elastic.core import events as ev
from spark_elastic.core.actions import Rescale
from spark_elastic.core.transitions import TRANSITIONS
from spark_elastic.http.metrics import flat
from tests.unit.core.builder import STATEFUL, STATELESS
from tests.unit.http.world import AT_ONCE, COUNTS, ID, NOW, World, world

REACTIVE = {"spark.elastic.schedulerMode": "reactive"}
BATCH = {
    "query": ID,
    "run": "r1",
    "batch": 1,
    "started": NOW,
    "duration_ms": 450,
    "input_rows": 500,
    "processed_rows_per_second": 1_111.5,
    "partitions": 4,
}
"""A micro-batch of a query whose trigger interval is 500 ms."""

# Required by promtool, in addition to what the parser requires.
_NAME = re.compile(r"spark_elastic(_[a-z0-9]+)+")
_NO_BASE_UNITS = {
    "milliseconds",
    "ms",
    "minutes",
    "hours",
    "days",
    "percent",
    "kilobytes",
    "megabytes",
    "mb",
    "kb",
}
_KINDS = {"gauge", "counter", "histogram", "summary"}


@pytest.fixture
def running() -> Iterator[World]:
    with world(REACTIVE) as found:
        yield found


def scraped(running: World) -> dict[str, Metric]:
    families = list(text_string_to_metric_families(running.get("/elastic/metrics").text))
    assert len({family.name for family in families}) == len(families)
    return {family.name: family for family in families}


def value(running: World, name: str, **labels: str) -> float | None:
    """Return one sample without the labels of the query, None if it does not exist."""
    found = [
        sample.value
        for family in scraped(running).values()
        for sample in family.samples
        if sample.name == f"spark_elastic_{name}" and labels.items() <= sample.labels.items()
    ]
    assert len(found) < 2
    return found[0] if found else None


def test_rescales_are_counted_from_zero(running: World) -> None:
    counted = ("failed", "new_resources"), ("ignored", "lost_resources"), ("completed", "load_changed")
    for status, cause in counted:
        assert value(running, "rescales_total", status=status, cause=cause) == 0
    assert value(running, "rescales_total", status="in_progress", cause="new_resources") is None
    assert value(running, "paused_seconds_total", cause="load_changed") == 0


def batch(running: World, **change: object) -> None:
    running.send(ev.QueryProgress, **{**BATCH, **change})


def busy_world() -> Iterator[World]:
    names = ('a"b\\c\nd', "", "totals")
    queries = [evolve(STATELESS, query=f"id-{number}", name=name) for number, name in enumerate(names)]
    with world(REACTIVE, queries=(COUNTS, *queries)) as running:
        behind = ev.OffsetsBehind(avg=2.0, max=4, min=1)
        for number, started in enumerate((NOW, NOW + 500)):
            batch(
                running,
                batch=number,
                started=started,
                offsets_behind=behind,
                records_behind=8,
                event_time_lag_ms=2_500,
            )
        yield running


full = pytest.fixture(busy_world)


def test_the_clients_parser_takes_every_line(full: World) -> None:
    text = full.get("/elastic/metrics").text
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    read = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert len(read) == len(lines)
    assert {sample.labels["name"] for sample in read if sample.labels.get("query") == "id-0"} == {'a"b\\c\nd'}


def test_help_and_type_stand_once_before_the_samples(full: World) -> None:
    lines = full.get("/elastic/metrics").text.splitlines()
    helped = [line.split()[2] for line in lines if line.startswith("# HELP ")]
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert helped == typed
    assert len(set(helped)) == len(helped)
    at = {
        name: lines.index(next(line for line in lines if line.startswith(f"# TYPE {name} ")))
        for name in typed
    }
    for number, line in enumerate(lines):
        if not line.startswith("#"):
            name = re.split(r"[{ ]", line)[0]
            family = next(known for known in (name, re.sub("_(bucket|sum|count)$", "", name)) if known in at)
            assert at[family] < number
            assert not any(at[family] < other < number for other in at.values())


def test_no_sample_stands_twice(full: World) -> None:
    samples = [
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in scraped(full).values()
        for sample in family.samples
    ]
    assert len(set(samples)) == len(samples)


def test_names_kinds_and_units_follow_the_conventions(full: World) -> None:
    for line in full.get("/elastic/metrics").text.splitlines():
        if not line.startswith("# TYPE "):
            continue
        _, _, name, kind = line.split()
        assert _NAME.fullmatch(name), name
        assert name.endswith("_total") == (kind == "counter"), name
        words = set(name.split("_"))
        assert not words & _NO_BASE_UNITS, name
        assert not words & _KINDS, name
        if kind != "histogram":
            assert not name.endswith(("_bucket", "_sum", "_count", "_info")), name
        if name.endswith("_ratio"):
            assert kind == "gauge"
    for family in scraped(full).values():
        assert family.documentation.endswith("."), family.name
        for sample in family.samples:
            assert all(re.fullmatch("[a-z_]+", label) for label in sample.labels)
            assert "quantile" not in sample.labels
            assert ("le" in sample.labels) == sample.name.endswith("_bucket")


def test_all_that_is_known_of_a_query_is_told(full: World) -> None:
    found = {name: value(full, f"query_{name}", query=ID) for name in (
        "input_rows_per_second", "processed_rows_per_second", "batch_seconds", "trigger_interval_seconds",
        "load_ratio", "desired_slots", "records_behind", "backlog_records", "event_time_lag_seconds",
    )}  # fmt: skip
    assert found == {
        "input_rows_per_second": 1_000.0, "processed_rows_per_second": 1_111.5, "batch_seconds": 0.45,
        "trigger_interval_seconds": 0.5, "load_ratio": 0.9, "desired_slots": 6,
        "records_behind": 4, "backlog_records": 8, "event_time_lag_seconds": 2.5,
    }  # fmt: skip
    # 180 of the 450 ms count as fixed, which leaves 195 of the 375 ms that the target allows for 270 ms of
    # work on 4 slots.


def test_what_nobody_knows_has_no_sample(running: World) -> None:
    for name in (
        "query_input_rows_per_second", "query_processed_rows_per_second", "query_batch_seconds",
        "query_load_ratio", "query_desired_slots", "query_records_behind", "query_backlog_records",
        "query_event_time_lag_seconds", "busy_ratio", "desired_slots", "desired_executors",
    ):  # fmt: skip
        assert value(running, name) is None, name
        assert f"# TYPE spark_elastic_{name} gauge\n" in running.get("/elastic/metrics").text
    batch(running)
    assert value(running, "query_input_rows_per_second") is None
    assert value(running, "query_load_ratio") == 0.9
    assert value(running, "query_backlog_records") is None


def test_without_a_trigger_interval_there_is_none_to_show() -> None:
    with world(REACTIVE, queries=(evolve(COUNTS, trigger_ms=0),)) as running:
        batch(running, partitions=4)
        assert value(running, "query_trigger_interval_seconds") is None
        assert value(running, "query_load_ratio") is None
        batch(running, batch=2, started=NOW + 600, partitions=4)
        # 100 of the 450 ms and the 80 ms for opening the state count as the fixed part.
        assert value(running, "query_load_ratio") == pytest.approx(270 / 600)


def test_the_target_load_is_a_setting() -> None:
    wanted = []
    for target in ("0.4", "1"):
        with world({**REACTIVE, "spark.elastic.metrics.targetLoad": target}) as running:
            batch(running)
            wanted.append((value(running, "desired_slots"), value(running, "desired_executors")))
    (low, few), (high, many) = reversed(wanted)
    assert low is not None
    assert high is not None
    assert low < high
    assert (few, many) == (-(-low // 2), -(-high // 2))


def test_the_application_has_what_its_queries_have_together() -> None:
    other = evolve(COUNTS, query="other", name="other")
    with world(REACTIVE, queries=(COUNTS, other)) as running:
        batch(running)
        assert value(running, "desired_slots") is None
        batch(running, query="other", partitions=2)
        parts = [value(running, "query_desired_slots", query=query) for query in (ID, "other")]
        assert None not in parts
        assert value(running, "desired_slots") == sum(part or 0 for part in parts)
        assert value(running, "busy_ratio") == 1.0


def test_a_query_that_has_nothing_to_read_needs_its_lower_bound(running: World) -> None:
    batch(running)
    running.send(ev.QueryIdle, query=ID, run="r1")
    assert value(running, "query_load_ratio") == 0
    assert value(running, "query_input_rows_per_second") == 0
    assert value(running, "busy_ratio") == 0
    assert value(running, "desired_slots") == 1
    assert value(running, "desired_executors") == 1
    batch(running, batch=2, started=NOW + 20_000)
    assert value(running, "query_load_ratio") == 0.9


def test_an_idle_run_that_is_over_says_nothing_of_the_next(running: World) -> None:
    batch(running)
    running.send(ev.QueryIdle, query=ID, run="r0")
    assert value(running, "query_load_ratio") == 0.9


def test_time_in_each_state_is_counted(running: World) -> None:
    assert value(running, "query_state_seconds_total", state="Executing") == 0
    batch(running, at=NOW + 3_000)
    assert value(running, "query_state_seconds_total", state="Executing") == 3
    states = {s.labels["state"] for s in scraped(running)["spark_elastic_query_state_seconds"].samples}
    assert "Executing" in states
    assert states <= TRANSITIONS.keys()


def counters(running: World) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in scraped(running).values()
        if family.type == "counter"
        for sample in family.samples
    }


def test_no_counter_falls_when_a_query_is_started_again() -> None:
    conf = {
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.restartStrategy.type": "fixed-delay",
        "spark.elastic.restartStrategy.fixedDelay.delay": "0",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    }
    with world(conf) as running:
        before = counters(running)
        steps: list[tuple[type[ev.Event], dict[str, object]]] = [
            (
                ev.QueryFailed,
                {"query": ID, "run": "r1", "at": NOW + 5_000, "failure": ev.Failure(error="disk full")},
            ),
            (ev.QuerySubmitted, {"facts": COUNTS, "run": "r2", "at": NOW + 9_000}),
            (ev.QueryTerminated, {"query": ID, "run": "r2", "at": NOW + 12_000}),
            (ev.QuerySubmitted, {"facts": COUNTS, "run": "r3", "at": NOW + 20_000}),
            (ev.QueryStarted, {"query": ID, "run": "r3", "partitions": 4, "at": NOW + 21_000}),
        ]
        for kind, fields in steps:
            running.send(kind, **fields)
            now = counters(running)
            assert {name: now[name] for name in before if name in now and now[name] < before[name]} == {}
            before = {**before, **now}
        assert value(running, "query_restarts_total", query=ID) == 1
        stayed = value(running, "query_state_seconds_total", query=ID, state="Executing")
        assert stayed is not None
        assert stayed >= 9


def test_queries_that_come_and_go_leave_no_metrics_behind() -> None:
    with world(REACTIVE, queries=()) as running:
        empty = len(running.get("/elastic/metrics").text.splitlines())
        sizes = []
        for number in range(130):
            facts = evolve(STATEFUL, query=f"q{number}", name=f"n{number}")
            running.send(ev.QuerySubmitted, facts=facts, run="r1")
            sizes.append(len(running.get("/elastic/metrics").text.splitlines()))
            running.send(ev.QueryTerminated, query=f"q{number}", run="r1")
        # The application's counters by cause and status remain; their number is limited.
        assert sizes[-1] == sizes[1]
        assert len(running.get("/elastic/metrics").text.splitlines()) <= empty + 10
        assert running.publisher.view is not None
        assert len(running.publisher.view.totals.queries) <= 100


def test_rescales_and_failures_are_told_apart() -> None:
    with world({**REACTIVE, **AT_ONCE}) as running:
        batch(running, started=NOW + 1)
        running.send(ev.ExecutorAdded, executor="3", host="h", cores=2)
        batch(running, batch=2, started=NOW + 600, at=NOW + 1_000)
        assert running.shim.ordered(Rescale).partitions == 6
        running.shim.settle()
        assert value(running, "query_rescales_total", query=ID) == 1
        assert value(running, "query_restarts_total", query=ID) == 0
        assert value(running, "query_paused_seconds_total", query=ID) is not None


def test_sinks_of_spark_get_the_same_metrics(full: World) -> None:
    view = full.publisher.view
    assert view is not None
    found = flat(view)
    assert found["query_load_ratio.counts"] == 0.9
    assert found["query_state_seconds_total.counts.Executing"] >= 0
    families = {family.removeprefix("spark_elastic_") for family in scraped(full)}
    assert {re.sub("_(total|count|sum)$", "", name.split(".")[0]) for name in found} <= families
