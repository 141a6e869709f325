"""Tests of a policy process that dies, and of the next one, which continues from the journal."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action, Report, Rescale, SetTimer
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime import journal as journal_module
from spark_elastic.runtime import resume as resume_module
from spark_elastic.runtime.clock import SteadyClock
from spark_elastic.runtime.entries import ActionsEntry, EventEntry, StateEntry, read_journal
from spark_elastic.runtime.journal import JournalPlace, open_journal
from spark_elastic.runtime.loop import Loop
from spark_elastic.runtime.replay import replay
from spark_elastic.runtime.resume import resume
from tests.unit.core.builder import STATEFUL
from tests.unit.runtime.memory_gateway import MemoryGateway, SteppedClock
from tests.unit.runtime.support import START

RUN = {"query": "counts", "run": "r1"}


class Application:
    """A driver with one running query, and one policy process after another."""

    def __init__(self, folder: Path, **conf: str) -> None:
        self.path = folder / "spark-elastic-app-1.jsonl"
        self.conf = {
            "spark.elastic.journal.dir": str(folder),
            **{f"spark.elastic.{key.replace('_', '.')}": value for key, value in conf.items()},
        }
        self.application = "app-1"
        self.sent = 0

    def event(self, kind: type[ev.Event], at: int, **fields: Any) -> ev.Event:
        self.sent += 1
        return kind(id=f"s{self.sent}", at=at, **fields)

    def snapshot(self, at: int, cores: int = 2, *queries: ev.QueryInfo) -> ev.Event:
        return self.event(
            ev.Snapshot, at,
            application=self.application, application_name="demo", spark_version="4.2.0", conf=self.conf,
            executors=(ev.ExecutorInfo(executor="0", host="h", cores=cores),), queries=queries,
        )  # fmt: skip

    def starts(self) -> list[ev.Event]:
        """Return the events of an executor and of a query that starts on it."""
        return [
            self.snapshot(START),
            self.event(ev.QuerySubmitted, START + 10, facts=STATEFUL, run="r1"),
            self.event(ev.QueryStarted, START + 20, **RUN, partitions=2),
        ]

    def goes_on(self, at: int, cores: int = 2) -> ev.Event:
        """Return a snapshot with the running query."""
        return self.snapshot(
            at, cores, ev.QueryInfo(facts=STATEFUL, run="r1", run_state="running", partitions=2)
        )

    def grows(self, at: int) -> ev.Event:
        return self.event(ev.ExecutorAdded, at, executor="1", host="h", cores=2)

    def batches(self, begin: int, end: int) -> list[ev.Event]:
        return [
            self.event(ev.QueryProgress, at, **RUN, batch=at, started=at - 400, duration_ms=400, partitions=2)
            for at in range(begin, end, 500)
        ]

    def process(
        self, *events: ev.Event, until: int, resumes: Callable[..., Any] = resume, leapt: int = 0
    ) -> list[Action]:
        """Run a policy process that is killed at `until`, and return its orders.

        The wall clock jumped by `leapt` ms before that.
        """
        wall = SteppedClock(events[0].at)
        gateway = MemoryGateway(wall, end=until)
        gateway.offer(*events)
        clock = SteadyClock(wall.now, lambda: wall.now() - leapt)
        Loop(gateway, clock, Scheduler, partial(open_journal, reading=clock.reading), resume=resumes).run()
        return self.written()

    def written(self) -> list[Action]:
        """Return all actions of the journal, in order."""
        entries = [entry for _, entry in read_journal(self.path)]
        return [action for entry in entries if isinstance(entry, ActionsEntry) for action in entry.actions]

    def rescale_ordered(self) -> int:
        """Return when the rescale was ordered."""
        event = None
        for _, entry in read_journal(self.path):
            if isinstance(entry, EventEntry):
                event = entry.event
            if isinstance(entry, ActionsEntry) and any(isinstance(a, Rescale) for a in entry.actions):
                assert event is not None
                return event.at
        raise AssertionError("it was not rescaled")


def in_cooldown(folder: Path) -> Application:
    """Let a policy process die in the middle of a cooldown, with a change that waits for its end."""
    application = Application(folder, adaptiveScheduler_rescalePolicy="always")
    application.process(*application.starts(), application.grows(START + 5_000), until=START + 10_000)
    return application


def test_a_cooldown_ends_when_it_would_have_ended(tmp_path: Path) -> None:
    alone = Application(tmp_path / "alone", adaptiveScheduler_rescalePolicy="always")
    alone.process(
        *alone.starts(), alone.grows(START + 5_000), *alone.batches(START + 6_000, START + 60_000),
        until=START + 60_000,
    )  # fmt: skip
    resumed = in_cooldown(tmp_path / "resumed")
    again = resumed.goes_on(START + 12_000, cores=4)
    resumed.process(again, *resumed.batches(START + 12_100, START + 60_000), until=START + 60_000)
    assert resumed.rescale_ordered() == pytest.approx(alone.rescale_ordered(), abs=600)
    anew = in_cooldown(tmp_path / "anew")
    again = anew.goes_on(START + 12_000, cores=4)
    batches = anew.batches(START + 12_100, START + 80_000)
    anew.process(again, *batches, until=START + 80_000, resumes=lambda *_: None)
    assert anew.rescale_ordered() > alone.rescale_ordered() + 6_000


@pytest.mark.parametrize("leap", [3_600_000, -3_600_000])
def test_a_leap_of_the_clock_before_it_began_counts_as_no_time(tmp_path: Path, leap: int) -> None:
    application = in_cooldown(tmp_path)
    begin, end = START + 12_000 + leap, START + 60_000 + leap
    again = application.goes_on(begin, cores=4)
    application.process(again, *application.batches(begin + 100, end), until=end, leapt=leap)
    assert START + 20_000 < application.rescale_ordered() < START + 60_000


def test_a_clock_that_was_set_back_meanwhile_does_not_hold_it_up(tmp_path: Path) -> None:
    application = in_cooldown(tmp_path)
    clock = SteppedClock(START - 3_600_000)
    gateway = MemoryGateway(clock, end=clock.now() + 1)
    gateway.offer(application.goes_on(clock.now()))
    Loop(gateway, clock, Scheduler, open_journal, resume=resume).run()
    assert clock.now() == START + 5_000


def test_ids_and_numbers_go_on_and_timers_are_set_again(tmp_path: Path) -> None:
    application = in_cooldown(tmp_path)
    before = application.written()
    after = application.process(application.goes_on(START + 12_000), until=START + 70_000)
    ids = [action.id for action in after]
    assert len(set(ids)) == len(ids)
    numbers = [action.decision.number for action in after if isinstance(action, Report)]
    assert numbers == list(range(1, len(numbers) + 1))
    (first,) = {action.timer for action in before if isinstance(action, SetTimer)}
    assert [a.at for a in after[len(before) :] if isinstance(a, SetTimer) and a.timer == first] == [
        START + 30_020
    ]
    events = [e.event.id for _, e in read_journal(application.path) if isinstance(e, EventEntry)]
    assert len(set(events)) == len(events)


def test_a_journal_of_several_processes_is_replayed(tmp_path: Path) -> None:
    application = in_cooldown(tmp_path)
    application.process(application.goes_on(START + 12_000), until=START + 20_000)
    application.process(application.goes_on(START + 22_000), until=START + 70_000)
    result = replay(read_journal(application.path), Scheduler)
    assert (result.difference, result.runs, result.left_out) == (None, 3, 0)


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    application = in_cooldown(tmp_path)
    with application.path.open("a") as file:
        file.write('{"event":{"type":"Query')
    with caplog.at_level(logging.INFO, "spark_elastic"):
        application.process(application.goes_on(START + 12_000), until=START + 70_000)
    assert [line for line in caplog.messages if "events replayed" in line]
    result = replay(read_journal(application.path), Scheduler)
    assert (result.difference, result.runs) == (None, 2)


def test_a_process_that_died_as_it_began_loses_nothing(tmp_path: Path) -> None:
    application = in_cooldown(tmp_path)
    header = application.path.read_text().splitlines(keepends=True)[0]
    for rest in ("", '{"state":{"form'):
        with application.path.open("a") as file:
            file.write(header + rest)
        resumed = resume_of(application)
        assert resumed is not None
        assert resumed.last_event == "s4"


def resume_of(application: Application) -> Any:
    settings = journal_settings(application)
    snapshot = application.goes_on(START + 12_000)
    return resume(settings, snapshot)  # type: ignore[arg-type]


def journal_settings(application: Application) -> Any:
    from spark_elastic.settings import load

    return load(application.conf)


def test_after_a_new_part_the_state_at_its_beginning_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = Application(tmp_path, journal_maxSize="128k", adaptiveScheduler_rescalePolicy="always")
    batches = application.batches(START + 100, START + 200_000)
    application.process(*application.starts(), *batches, until=START + 200_000)
    older = application.path.with_name(application.path.name + ".1")
    assert older.exists()
    whole = resume_of(application)
    assert whole is not None
    # While the journal starts a new part, only the older one exists for a moment; then its end counts.
    application.path.unlink()
    monkeypatch.setattr(
        resume_module, "journal_place", lambda *_: JournalPlace(path=application.path, own=False)
    )
    older.rename(application.path)
    part = resume_of(application)
    assert part is not None
    assert int(part.last_event[1:]) < int(whole.last_event[1:])
    result = replay(read_journal(application.path), Scheduler)
    assert (result.difference, result.left_out) == (None, 0)


def test_a_state_in_between_saves_most_of_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(journal_module, "_STATE_EVERY", 20_000)
    monkeypatch.setattr(journal_module, "_EVENTS_PER_STATE", 1)
    application = Application(tmp_path)
    batches = application.batches(START + 100, START + 100_000)
    application.process(*application.starts(), *batches, until=START + 100_000)
    assert [entry for _, entry in read_journal(application.path) if isinstance(entry, StateEntry)]
    with caplog.at_level(logging.INFO, "spark_elastic"):
        assert resume_of(application) is not None
    read = int(caplog.messages[-1].split(": ")[1].split()[0])
    assert 0 < read < len(batches) / 2


def refused(caplog: pytest.LogCaptureFixture, application: Application) -> str:
    with caplog.at_level(logging.INFO, "spark_elastic"):
        assert resume_of(application) is None
    (message,) = caplog.messages
    assert message.startswith("starting over")
    return message


def test_a_state_of_another_form_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    application = in_cooldown(tmp_path)
    application.process(application.goes_on(START + 12_000), until=START + 13_000)
    text = application.path.read_text()
    form = Scheduler(journal_settings(application).core()).save()["form"]
    application.path.write_text(text.replace(form, "0ld"))
    assert f"its form is 0ld, this version has form {form}" in refused(caplog, application)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"version":"', '"version":"0.0.', "it was written by version 0.0."),
        ('"application":"app-1","part"', '"application":"app-2","part"', "that of application app-2"),
        ('cooldownAfterRescaling":"30s"', 'cooldownAfterRescaling":"31s"', "with other settings"),
        ('{"event":{"type":"ExecutorAdded"', '{"event":{"type":"MoonRose"', "unknown event type 'MoonRose'"),
        ('{"event":{"type":"ExecutorAdded"', '{"eve', "no line of a journal"),
    ],
)
def test_a_journal_that_cannot_be_used_is_refused_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, old: str, new: str, says: str
) -> None:
    application = in_cooldown(tmp_path)
    text = application.path.read_text()
    assert old in text
    application.path.write_text(text.replace(old, new))
    assert says in refused(caplog, application)


def test_without_beginning_and_state_nothing_can_be_resumed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    application = in_cooldown(tmp_path)
    application.path.write_text(application.path.read_text().replace('"part":0', '"part":1'))
    assert "neither its start nor a saved state" in refused(caplog, application)


def test_a_run_begins_with_its_state_however_large_that_is(tmp_path: Path) -> None:
    application = in_cooldown(tmp_path)
    text = application.path.read_text()
    application.conf["spark.elastic.journal.maxSize"] = "64k"
    application.path.write_text(text.replace('maxSize":"64m"', 'maxSize":"64k"'))
    view = resume_of(application).policy._machines["counts"].record.told
    view.once.update(f"{number:01000}" for number in range(20))
    large = Scheduler.restore(resume_of(application).policy.save())
    large._machines["counts"].record.told.once.update(view.once)
    resumed = evolve(resume_of(application), policy=large)
    application.process(application.goes_on(START + 14_000), until=START + 20_000, resumes=lambda *_: resumed)
    result = replay(read_journal(application.path), Scheduler)
    assert (result.difference, result.runs, result.left_out) == (None, 2, 0)


def test_an_event_that_broke_the_process_before_does_not_break_this_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = in_cooldown(tmp_path)

    def breaks(self: Scheduler, event: ev.Event) -> tuple[Action, ...]:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Scheduler, "handle", breaks)
    assert "ZeroDivisionError: a bug" in refused(caplog, application)


def test_the_journal_of_another_driver_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A second attempt can have the same id as the first; it counts its events from 1."""
    application = in_cooldown(tmp_path)
    application.sent = 0
    assert "that of another driver" in refused(caplog, application)


def test_what_takes_too_long_is_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = in_cooldown(tmp_path)
    monkeypatch.setattr(resume_module, "LONGEST_S", -1.0)
    assert "longer than" in refused(caplog, application)


def test_nobody_goes_on_from_a_journal_that_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last state in it is outdated."""
    application = in_cooldown(tmp_path)
    assert resume_of(application) is not None

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal_module.Journal, "_open", fails)
    assert journal_module.open_journal(
        journal_settings(application),
        application.goes_on(START + 12_000),  # type: ignore[arg-type]
    ).failed
    assert resume_of(application) is None


def test_without_a_journal_a_process_begins_anew(tmp_path: Path) -> None:
    application = Application(tmp_path)
    assert resume_of(application) is None
    application.conf = {"spark.elastic.journal.dir": "none"}
    assert resume_of(application) is None


def test_bounds_survive_and_a_policy_file_is_not_said_twice(tmp_path: Path) -> None:
    """A file that is reported again would replace bounds that were requested since."""
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nqueries:\n  counts: {upperBound: 6}\n")
    application = Application(tmp_path / "journal", schedulerMode="adaptive", policyFile=str(file))
    asked = application.event(
        ev.RequirementsRequested, START + 5_000, query="counts", bounds={"shuffle": (1, 3)}, by="somebody"
    )
    application.process(*application.starts(), asked, until=START + 10_000)
    application.process(application.goes_on(START + 12_000), until=START + 20_000)
    scheduler = Scheduler(journal_settings(application).core())
    said = 0
    for _, entry in read_journal(application.path):
        if isinstance(entry, StateEntry):
            scheduler = Scheduler.restore(entry.state)
        elif isinstance(entry, EventEntry):
            scheduler.handle(entry.event)
            said += isinstance(entry.event, ev.PolicyFileChanged)
    assert said == 1
    assert scheduler._machines["counts"].record.requirements.upper == 3
    file.write_text("version: 1\nqueries:\n  counts: {upperBound: 5}\n")
    application.process(application.goes_on(START + 22_000), until=START + 30_000)
    changed = [
        entry.event
        for _, entry in read_journal(application.path)
        if isinstance(entry, EventEntry) and isinstance(entry.event, ev.PolicyFileChanged)
    ]
    # The runtime continues to count its own events.
    first, second = (int(event.id.removeprefix("r")) for event in changed)
    assert first < second


def test_the_facts_of_a_query_are_those_of_its_first_start(tmp_path: Path) -> None:
    application = in_cooldown(tmp_path)
    resumed = resume_of(application)
    assert resumed is not None
    view = resumed.policy.queries["counts"]
    assert view.facts == evolve(STATEFUL)
    assert [record.cause for record in view.history] == ["new_resources", "initial_schedule"]
