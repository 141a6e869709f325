"""Tests of the feed that writes to a topic for the demonstration."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_elastic_lab.demo.broker import Producer
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic_lab.demo.source import TopicFeed

Start = Callable[[str], tuple[Producer, LoggedProcess]]


@pytest.fixture
def producer(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a shell command as the producer; its log is the command's output."""
    started: list[tuple[Producer, LoggedProcess]] = []

    def start(command: str) -> tuple[Producer, LoggedProcess]:
        process = LoggedProcess(
            "producer",
            ["sh", "-c", command],
            env=os.environ,
            log=tmp_path / f"{len(started)}.log",
            cwd=tmp_path,
            stdin=subprocess.PIPE,
        )
        started.append((Producer(process), process))
        return started[-1]

    yield start
    for one, process in started:
        one.abandon()
        assert not process.running


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    files = [tmp_path / "lineitem.1.csv", tmp_path / "lineitem.2.csv"]
    files[0].write_text('l_orderkey,l_comment\n1,"slowly, then"\n1,quick\n')
    files[1].write_text("l_orderkey,l_comment\n7,last\n")
    return files


def test_lines_are_sent_with_their_key_and_their_time_of_arrival(producer: Start, parts: list[Path]) -> None:
    started = [producer("cat"), producer("cat")]
    connected = iter(started)
    feed = TopicFeed(parts, lambda: next(connected)[0], interval_s=1)
    feed.deliver(arrival_s=5.25)
    feed.finish()
    first, last = (process.log.read_text().splitlines() for _, process in started)
    assert first == ['1\t5250,1,"slowly, then"', "1\t5250,1,quick"]
    (record,) = last
    key, _, value = record.partition("\t")
    arrival, _, line = value.partition(",")
    assert (key, line) == ("7", "7,last")
    assert int(arrival) > (time.time() + 600) * 1000
    assert (feed.delivered, feed.rows) == (2, 3)


def test_the_last_part_is_not_sent_before_all_others_have_arrived(producer: Start, parts: list[Path]) -> None:
    started: list[LoggedProcess] = []

    def connect() -> Producer:
        assert not any(process.running for process in started)
        one, process = producer("cat")
        started.append(process)
        return one

    feed = TopicFeed(parts, connect, interval_s=1)
    feed.deliver()
    feed.finish()
    assert len(started) == 2


def test_what_a_producer_could_not_send_is_told_at_the_end(producer: Start, parts: list[Path]) -> None:
    one, _ = producer("cat; echo 12:00 ERROR when sending message to topic lines")
    feed = TopicFeed(parts, lambda: one, interval_s=1)
    with pytest.raises(ProcessFailure, match="did not send all\n12:00 ERROR when sending"):
        feed.finish()


def test_a_producer_that_ends_with_an_error_has_not_sent_all(producer: Start) -> None:
    one, _ = producer("cat; exit 3")
    one.send([("1", "a")])
    with pytest.raises(ProcessFailure, match="did not send all"):
        one.close()


def test_a_producer_that_has_died_takes_nothing(producer: Start) -> None:
    one, process = producer("exit 1")
    assert process.wait(10) == 1
    with pytest.raises(ProcessFailure, match="producer has ended"):
        one.send([("1", "a")])
