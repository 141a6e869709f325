"""Tests that each invariant of the chaos run breaks when something forbidden has happened, and only then."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from attrs import evolve

from integration.chaos import invariants
from integration.chaos.journal import Moves
from integration.chaos.settings import AT_ONCE, SECRET
from integration.chaos.world import World
from spark_elastic import wire
from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.runtime.port import QueueName
from tests.unit.core.builder import STATEFUL, STATELESS

WINDOWS = [(100, 200)]


def lines(path: Path, *values: object) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The input of the invariants: a folder with output, journals and logs."""
    journal, log = tmp_path / "journal.jsonl", tmp_path / "driver.log"
    journal.write_text("")
    log.write_text("")
    world = SimpleNamespace(output=tmp_path, journals=lambda: [journal], logs=[log], stateful=("totals",))
    return cast(World, world)


def test_a_batch_that_is_written_twice_without_a_fault_is_named(world: World) -> None:
    def batches(*written: tuple[int, int]) -> list[str]:
        rows = ({"batch": number, "at": at, "rows": []} for number, at in written)
        lines(world.output / "totals.jsonl", *rows)
        return invariants.repeated(world, WINDOWS)

    assert batches((1, 10), (2, 20)) == []
    assert batches((1, 90), (1, 150)) == []
    assert batches((1, 150), (1, 210)) == ["totals has written batch 1 at 150 and 210"]


def test_a_batch_job_is_right_and_fails_for_a_fault_alone(world: World) -> None:
    lines(world.output / "jobs.jsonl", {"at": 1, "right": True}, {"at": 150, "error": "executor lost"})
    assert invariants.jobs(world, WINDOWS) == (2, [])
    lines(world.output / "jobs.jsonl", {"at": 150, "right": False}, {"at": 250, "error": "lost"})
    count, said = invariants.jobs(world, WINDOWS)
    assert count == 2
    assert [line.partition(":")[0] for line in said] == [
        "a batch job that ended at 150 has counted wrongly",
        "a batch job has failed at 250",
    ]


def test_a_restart_fails_for_a_fault_alone_and_no_waiter_stays(world: World) -> None:
    lines(world.output / "again.jsonl", {"at": 150, "error": "the storage is away"})
    assert invariants.badly_restarted(world, WINDOWS) == []
    lines(world.output / "again.jsonl", {"at": 150, "waits": "totals"}, {"at": 250, "error": "away"})
    assert invariants.badly_restarted(world, WINDOWS) == [
        "totals: a waiter has not returned, at 150",
        "a query could not be stopped and started, at 250: away",
    ]


def test_a_secret_is_found_in_journals_and_in_our_lines_of_the_log(world: World) -> None:
    (log,), (journal,) = world.logs, world.journals()
    said = "12:00:01.500 INFO ElasticDriver: spark-elastic: failed"
    log.write_text(f"{said}\n12:00:01.600 WARN Spark: at {SECRET}\n")
    assert invariants.secrets_told(world) == []
    # The secret is in the lines of an exception, which follow a line of ours.
    log.write_text(f"{said}\njava.io.IOException: at {SECRET}\n12:00:01.600 WARN Spark: away\n")
    journal.write_text(f"at {SECRET}\n")
    assert [said.partition(":")[0] for said in invariants.secrets_told(world)] == [
        "journal.jsonl has the secret",
        "the log has the secret",
    ]


def test_only_errors_of_the_list_are_known() -> None:
    log = (
        "12:00:00.1 ERROR TaskSchedulerImpl: Lost executor 1 on host: gone\n"
        "12:00:00.2 ERROR ElasticDriver: spark-elastic: could not start\n"
        "12:00:00.3 WARN ElasticDriver: no error\n"
        "12:00:00.4 ERROR Utils: Uncaught exception in thread Thread-4\n"
        "io.fabric8.kubernetes.client.KubernetesClientTimeoutException: Timed out waiting\n"
        "12:00:00.5 ERROR Utils: Uncaught exception in thread Thread-4\n"
        "java.lang.NullPointerException\n"
    )
    assert invariants.unknown_errors(log) == {
        "ElasticDriver: spark-elastic: could not start": 1,
        "Utils: Uncaught exception in thread Thread-4 java.lang.NullPointerException": 1,
    }


def test_each_python_process_that_declares_state_leaves_a_port_open(world: World) -> None:
    (log,) = world.logs
    log.write_text("Starting Streaming TransformWithStateInPandas Python worker.\n" * 2)
    assert invariants.ports_left_by_spark(log) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"threads": Counter({"elastic-#": invariants.MORE_THREADS + 4})}, "44 threads instead of 3"),
        ({"files": 10 + invariants.MORE_FILES + 1}, "91 files instead of 10"),
        ({"ports": 10 + invariants.MORE_PORTS + 1}, "15 ports instead of 10"),
        ({"heap_mb": 10 + invariants.MORE_HEAP_MB + 1}, "139 MB of objects instead of 10"),
        ({"policy_mb": 10 + invariants.MORE_POLICY_MB + 1}, "75 MB of the policy process instead of 10"),
    ],
)
def test_what_grows_beyond_what_comes_and_goes_is_said(change: dict[str, Any], said: str) -> None:
    first = invariants.Size(threads=Counter({"main": 3}), files=10, ports=10, heap_mb=10, policy_mb=10)
    assert first.more_than(first) == []
    (found,) = evolve(first, **change).more_than(first)
    assert found.startswith(said)


def test_one_thread_of_each_of_ours_is_enough_but_for_connections() -> None:
    of_spark = Counter({"main": 1, "task-launcher": 9})
    ours = Counter({"elastic-tick": 1, "elastic-gateway-call": 1 + len(get_args(QueueName))})
    size = invariants.Size(threads=of_spark + ours, files=1, ports=1, heap_mb=1, policy_mb=1)
    assert size.idle_threads() == []
    more = evolve(size, threads=size.threads + Counter({"elastic-tick": 1, "elastic-gateway-call": 1}))
    assert more.idle_threads() == ["2 threads elastic-tick", "5 threads elastic-gateway-call"]


def read(path: Path, *entries: ev.Event | ac.Action) -> Moves:
    """Read a journal with these entries."""
    said = (
        {"actions": [wire.encode_action(entry)]}
        if isinstance(entry, ac.Action)
        else {"event": wire.encode_event(entry)}
        for entry in entries
    )
    lines(path, *said)
    return Moves.of(path)


def moves(path: Path, facts: ev.QueryFacts, *, batch_between: bool) -> Moves:
    """Read a journal of two rescales."""
    query, entries = facts.query, list[ev.Event | ac.Action]()
    entries.append(ev.QuerySubmitted(id="s1", at=1, facts=facts, run="r1"))
    for number in (2, 3):
        change = ac.Rescale(id=f"a{number}", cause="s1", query=query, run="r1", partitions=number)
        entries.append(change)
        entries.append(ev.ActionDone(id=f"s{number}", at=number, action=change.id, query=query, took_ms=1))
        if batch_between:
            committed = ev.QueryProgress(
                id=f"p{number}",
                at=number,
                query=query,
                run="r1",
                batch=number,
                started=1,
                duration_ms=1,
                partitions=number,
            )
            entries.append(committed)
    return read(path, *entries)


def test_state_that_moves_twice_without_a_batch_between_is_named(tmp_path: Path) -> None:
    well = moves(tmp_path / "well.jsonl", STATEFUL, batch_between=True)
    assert (well.moved, well.in_place, well.broken) == (2, 0, [])
    in_place = moves(tmp_path / "in-place.jsonl", STATELESS, batch_between=False)
    assert (in_place.moved, in_place.in_place, in_place.broken) == (0, 2, [])
    badly = moves(tmp_path / "badly.jsonl", STATEFUL, batch_between=False)
    assert badly.moved == 2
    assert len(badly.broken) == 1


def submitted(number: int, facts: ev.QueryFacts = STATEFUL) -> ev.QuerySubmitted:
    facts = evolve(facts, query=f"q{number}", checkpoint_partitions=1)
    return ev.QuerySubmitted(id=f"s{number}", at=1, facts=facts, run="r")


def rescale(number: int, query: int) -> ac.Rescale:
    return ac.Rescale(id=f"a{number}", cause="s0", query=f"q{query}", run="r", partitions=2)


def start(query: int, partitions: int | None = 2) -> ac.StartQuery:
    return ac.StartQuery(id=f"b{query}", cause="s0", query=f"q{query}", run="r", partitions=partitions)


SUBMITTED = [submitted(number) for number in range(AT_ONCE + 1)]
MOVING = [rescale(number, number) for number in range(AT_ONCE)]
TAKEN_BACK = ev.ActionFailed(id="e", at=2, action="a0", query="q0", error="taken back")


@pytest.mark.parametrize(
    "end",
    [
        TAKEN_BACK,
        ev.ActionDone(id="e", at=2, action="a0", query="q0", took_ms=1),
        ev.QueryStarted(id="e", at=2, query="q0", run="r", partitions=1),
        ev.QueryFailed(id="e", at=2, query="q0", run="r", failure=ev.Failure(error="ill")),
        ev.QueryTerminated(id="e", at=2, query="q0", run="r"),
        SUBMITTED[0],
        ac.CancelQuery(id="c", cause="s0", query="q0", run="r"),
    ],
    ids=lambda end: type(end).__name__,
)
def test_with_its_end_a_move_makes_room_for_another(tmp_path: Path, end: ev.Event | ac.Action) -> None:
    found = read(tmp_path / "journal.jsonl", *SUBMITTED, *MOVING, end, rescale(7, AT_ONCE))
    assert (found.at_once, found.broken) == (AT_ONCE, [])


@pytest.mark.parametrize(
    "no_end",
    [
        # A later order for the same query has replaced the first, which may be pending.
        (rescale(8, 0), TAKEN_BACK),
        (ev.QueryTerminated(id="e", at=2, query="q0", run="another"),),
    ],
    ids=["replaced", "of another run"],
)
@pytest.mark.parametrize("another", [rescale(7, AT_ONCE), start(AT_ONCE)], ids=["rescaled", "started"])
def test_too_many_moves_at_once_are_named(
    tmp_path: Path, no_end: tuple[ev.Event | ac.Action, ...], another: ac.Action
) -> None:
    found = read(tmp_path / "journal.jsonl", *SUBMITTED, *MOVING, *no_end, another)
    assert found.at_once == AT_ONCE + 1
    assert len(found.broken) == 1


def copy(number: int, query: int, partitions: int = 2) -> ac.PrepareMove:
    return ac.PrepareMove(
        id=f"c{number}", cause="s0", query=f"q{query}", run="r", partitions=partitions, tasks=1
    )


def test_a_copy_counts_as_a_move_until_its_rescale_has_ended(tmp_path: Path) -> None:
    begun: tuple[ev.Event | ac.Action, ...] = (*SUBMITTED, *MOVING[1:], copy(1, 0))
    copied = ev.ActionDone(id="d", at=2, action="c1", query="q0", took_ms=1)
    switched = ev.ActionDone(id="e", at=3, action="a9", query="q0", took_ms=1, prepared=True)
    another = rescale(7, AT_ONCE)
    since: tuple[ev.Event | ac.Action, ...] = (copied, rescale(9, 0))
    for still in (since[:0], since[:1], since):
        found = read(tmp_path / f"{len(still)}.jsonl", *begun, *still, another)
        assert found.at_once == AT_ONCE + 1
        assert len(found.broken) == 1
    found = read(tmp_path / "through.jsonl", *begun, *since, switched, another)
    assert (found.at_once, found.moved, found.broken) == (AT_ONCE, 1, [])


@pytest.mark.parametrize(
    "end",
    [
        copy(2, 0, partitions=1),
        ac.TakeSavepoint(id="s", cause="s0", query="q0", run="r", target="/s", within="/s", stop=True),
        ev.QueryFailed(id="e", at=2, query="q0", run="r", failure=ev.Failure(error="ill")),
    ],
    ids=lambda end: type(end).__name__,
)
def test_a_copy_that_is_dropped_makes_room(tmp_path: Path, end: ev.Event | ac.Action) -> None:
    begun: tuple[ev.Event | ac.Action, ...] = (*SUBMITTED, *MOVING[1:], copy(1, 0))
    found = read(tmp_path / "journal.jsonl", *begun, end, rescale(7, AT_ONCE))
    assert (found.at_once, found.broken) == (AT_ONCE, [])


def test_what_moves_no_state_does_not_count(tmp_path: Path) -> None:
    others = (submitted(8, STATELESS), rescale(8, 8), start(AT_ONCE, None), start(AT_ONCE, 1))
    found = read(tmp_path / "journal.jsonl", *SUBMITTED, *MOVING, *others)
    assert (found.at_once, found.broken) == (AT_ONCE, [])


def test_a_move_at_the_start_of_a_query_has_a_batch_before_the_next(tmp_path: Path) -> None:
    started = ev.QueryStarted(id="e", at=2, query="q0", run="r", partitions=2)
    again = evolve(rescale(9, 0), partitions=3)
    done = ev.ActionDone(id="d", at=3, action="a9", query="q0", took_ms=1)
    found = read(tmp_path / "journal.jsonl", SUBMITTED[0], start(0), started, again, done)
    assert found.moved == 2
    assert len(found.broken) == 1


def test_in_reactive_mode_each_query_uses_all_slots() -> None:
    shown = {"totals": {"state": "Executing", "partitions": 2}}
    world = SimpleNamespace(
        plugin=True,
        mode="reactive",
        executors=lambda: {"1": None, "2": None},
        wanted_executors=lambda: (2, "workers"),
        policies=lambda: [1],
        api=SimpleNamespace(get=lambda _path: {"slots": {"now": 2}}),
        queries=lambda: shown,
    )
    assert list(invariants.not_well(cast(World, world))) == []
    shown["totals"]["partitions"] = 1
    assert list(invariants.not_well(cast(World, world))) == ["totals has 1 partitions for 2 slots"]
    world.mode = "adaptive"
    assert list(invariants.not_well(cast(World, world))) == []
