"""A run under a load on the cluster, and the content of its journal from the load's first second on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import evolve

from integration.cluster.application import Application
from integration.cluster.lines import TRIGGER_S, LinesOfLoad, start_slow, written_by
from integration.streaming.waiting import eventually
from spark_elastic.core.policies.view import Sample
from spark_elastic.runtime.entries import Entry, EventEntry, read_journal
from spark_elastic_lab.simulator.heard import Heard, HeardQuery
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.record import QueryNotes, Steps
from spark_elastic_lab.simulator.recorded import heard, scenario_of
from spark_elastic_lab.simulator.recorded_run import recorded_run
from spark_elastic_lab.simulator.scenario import Scenario

_LATE_S = 120.0


def run_load(app: Application, name: str, load: Load, workers: int) -> int:
    """Let a query follow a load that begins once there are this many executors; return its start (epoch ms).

    It begins at a trigger, as in a simulation, so that micro-batches read whole seconds in both.
    """
    app.have_workers(workers)
    begin = (time.time() // TRIGGER_S + 1) * TRIGGER_S
    with LinesOfLoad(folder=app.places.output.with_name("lines"), load=load, begin=begin) as lines:
        app.start(name, start_slow(lines))

        def over() -> bool:
            app.check_alive()
            return lines.over

        eventually(over, "the load is over", timeout_s=len(load.rates) + _LATE_S, every_s=1.0)
        app.queries[name].stop()
    return round(begin * 1_000)


def heard_of(journal: Path, load: Load, begin: int) -> Heard:
    """Read the journal of a run under a load that began at this time (epoch ms)."""
    return as_written(heard_since([entry for _, entry in read_journal(journal)], begin), load)


def just_met(told: Heard) -> Scenario:
    """Return the scenario of a run, with an objective that it just met, however busy the machine was."""
    scenario = scenario_of(told)
    largest = recorded_run(told, scenario).metrics.largest_lag_s
    return evolve(scenario, max_lag_s=largest + TRIGGER_S)


def as_written(found: Heard, load: Load) -> Heard:
    """Return the facts of a run under a load, with the rows that each micro-batch found to read.

    Spark counts the rows of repeated tasks twice, such as those that follow the loss of an executor's shuffle
    files.
    """
    return evolve(
        found,
        queries={
            id: evolve(query, samples=_as_written(query.samples, found.begin, load))
            for id, query in found.queries.items()
        },
    )


def _as_written(samples: Iterable[Sample], begin: int, load: Load) -> list[Sample]:
    rows, before = [], 0
    for sample in samples:
        until = written_by((sample.started - begin) / 1_000, load)
        rows.append(evolve(sample, input_rows=until - before))
        before = until
    return rows


def heard_since(entries: Sequence[Entry], begin: int) -> Heard:
    """Return the facts from a moment on (epoch ms); earlier entries give the starting point.

    Raises NothingRecordedError where `heard` does.
    """
    found, before = heard(entries), Heard()
    for entry in entries:
        if isinstance(entry, EventEntry) and entry.event.at >= begin:
            break
        before.entry(entry)
    passed = begin - found.begin
    there = _since(found.there, passed)
    return evolve(
        found,
        begin=begin,
        initial=there.at(0),
        there=there,
        scaled=found.scaled - passed,
        # Before the first request, the cluster provides its initial executors.
        wanted=_since(found.wanted, passed, there.at(0)),
        startups_ms=found.startups_ms[len(before.startups_ms) :],
        said=[(max(0, at - passed), event) for at, event in found.said],
        queries={id: _query_since(query, passed) for id, query in found.queries.items()},
    )


def _query_since(query: HeardQuery, begin: int) -> HeardQuery:
    return evolve(
        query,
        begins=max(0, query.begins - begin),
        ends=None if query.ends is None else query.ends - begin,
        notes=_notes_since(query.notes, begin),
    )


def _notes_since(notes: QueryNotes, begin: int) -> QueryNotes:
    later = [evolve(rescaled, at=rescaled.at - begin) for rescaled in notes.rescales if rescaled.at >= begin]
    return evolve(notes, partitions=_since(notes.partitions, begin), rescales=later)


def _since(steps: Steps, begin: int, first: int = 0) -> Steps:
    """Return the numbers from a moment on, with `first` at that moment if none was recorded by then."""
    later = Steps([0], [steps.at(begin) if steps.times and steps.times[0] <= begin else first])
    for at, value in zip(steps.times, steps.values, strict=True):
        if at > begin:
            later.note(at - begin, value)
    return later
