"""Where the demonstration's input comes from: files in a folder, or a topic of a Kafka broker."""

from __future__ import annotations

import os
import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from spark_elastic_lab.demo.broker import Broker, Producer, source_jars
from spark_elastic_lab.demo.check import Check, check_offsets, check_sent
from spark_elastic_lab.demo.chronicle import Chronicle
from spark_elastic_lab.demo.data import Tables, generate

# What is delivered at a steady rate, as from an upstream system; parts of a table above all.


# The arrival time of the last part lies so far ahead that every window before it is closed.
_LAST_ARRIVAL_AHEAD_S = 3600.0


class Steady(ABC):
    """A thread that delivers something every `interval_s` seconds, until it is stopped."""

    def __init__(self, *, interval_s: float) -> None:
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin to deliver; the first time at once."""
        self._thread.start()

    def pace(self, interval_s: float) -> None:
        """Deliver each `interval_s` seconds from the next one on."""
        self._interval_s = interval_s

    def stop(self) -> None:
        """Deliver nothing more; returns once all has arrived, and leaves no sign of an end."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    @abstractmethod
    def deliver(self) -> None:
        """Deliver the next one."""

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            self.deliver()
            # After a stall the rate continues from now: a burst would hide what the stall did.
            due = max(due + self._interval_s, time.monotonic())


class Delivery(Steady):
    """Delivers `parts` one by one, over and over, until it is finished.

    Others may deliver too meanwhile: parts get their numbers, and times of arrival, one after the other.
    """

    def __init__(self, parts: Sequence[Path], *, interval_s: float) -> None:
        if not parts:
            raise ValueError("there are no files to feed")
        super().__init__(interval_s=interval_s)
        self._parts = parts
        self._one = threading.Lock()
        self.delivered = 0

    def finish(self) -> None:
        """Deliver one last part with a late time of arrival; returns once all has arrived."""
        self.stop()
        self.deliver(arrival_s=time.time() + _LAST_ARRIVAL_AHEAD_S)

    def deliver(self, *, arrival_s: float | None = None) -> None:
        """Deliver the next part, by default with now as its time of arrival (epoch seconds)."""
        with self._one:
            part = self._parts[self.delivered % len(self._parts)]
            self._deliver(part, self.delivered, time.time() if arrival_s is None else arrival_s)
            self.delivered += 1

    @abstractmethod
    def _deliver(self, part: Path, number: int, arrival_s: float) -> None:
        """Deliver a part under a number that no other has."""


# Parts that arrive as records of a Kafka topic.


class TopicFeed(Delivery):
    """Sends the lines of parts in CSV: the key is a line's first column, its time of arrival comes before it.

    `connect` starts a producer. `rows` counts the lines that were sent.
    """

    def __init__(self, parts: Sequence[Path], connect: Callable[[], Producer], *, interval_s: float) -> None:
        super().__init__(parts, interval_s=interval_s)
        self._connect = connect
        self._producer = connect()
        self.rows = 0

    def finish(self) -> None:
        """Do as every delivery; raises ProcessFailure if a record got lost on its way."""
        self.stop()
        # What comes last makes all that came before late: it must not be in one partition before the rest is
        # in another.
        self._producer.close()
        self._producer = self._connect()
        super().finish()
        self._producer.close()

    def _deliver(self, part: Path, number: int, arrival_s: float) -> None:
        records = list(_records(part, int(arrival_s * 1000)))
        self._producer.send(records)
        self.rows += len(records)


def _records(part: Path, arrival_ms: int) -> Iterator[tuple[str, str]]:
    with part.open() as lines:
        next(lines)  # the names of the columns
        for line in lines:
            yield line.partition(",")[0], f"{arrival_ms},{line.rstrip()}"


# Parts that arrive as files in a folder.


class Feed(Delivery):
    """Copies parts into `incoming`.

    A file appears whole (written elsewhere, then renamed), and its modification time is its time of arrival.
    """

    def __init__(self, parts: Sequence[Path], incoming: Path, *, interval_s: float) -> None:
        super().__init__(parts, interval_s=interval_s)
        self._incoming = incoming
        self._staging = incoming.with_name(f"{incoming.name}-staging")
        self._incoming.mkdir(parents=True)
        self._staging.mkdir()

    def _deliver(self, part: Path, number: int, arrival_s: float) -> None:
        name = f"lineitem-{number:06d}.parquet"
        staged = self._staging / name
        shutil.copyfile(part, staged)
        os.utime(staged, (arrival_s, arrival_s))
        staged.rename(self._incoming / name)


_FILE_INTERVAL_S = 0.5
# Lines of CSV take more of a small machine than columns do.
_RECORDS_INTERVAL_S = 1.0
_TOPIC = "lineitem"
_PARTITIONS = 3


class Source(ABC):
    """Input that arrives somewhere, from `open` to `close`.

    `incoming` is what the application calls that place, `jars` what Spark needs to read from it.
    """

    incoming: str
    jars: Sequence[Path] = ()

    @abstractmethod
    def open(self, *, scale: float, parts: int, interval_s: float | None) -> tuple[Tables, Delivery]:
        """Return the tables, and who delivers lineitem, not started yet.

        lineitem at `scale` is delivered in so many `parts`, each `interval_s` seconds one; None: as fast as
        suits this source. Raises ProcessFailure or DataFailure.
        """

    @abstractmethod
    def close(self) -> None:
        """End everything that `open` has started, also if it has failed."""

    def checks(self, chronicle: Chronicle, comparison: Mapping[str, Mapping[str, int]]) -> list[Check]:
        """Check what only this source can have."""
        return []

    def left_over(self) -> list[str]:
        """Name what still runs or lies there, a moment after `close`."""
        return []


class FileSource(Source):
    """Parquet files that arrive in a folder below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._feed: Feed | None = None
        self.incoming = str(root / "incoming")

    def open(self, *, scale: float, parts: int, interval_s: float | None) -> tuple[Tables, Delivery]:
        """Return the tables, lineitem in files, and who copies those."""
        tables = generate(self._root / "tables", scale=scale, parts=parts)
        self._feed = Feed(tables.lineitem, Path(self.incoming), interval_s=interval_s or _FILE_INTERVAL_S)
        return tables, self._feed

    def close(self) -> None:
        """End the feed."""
        if self._feed is not None:
            self._feed.stop()


class KafkaSource(Source):
    """Lines of CSV in a topic of a broker whose folder is below `root`.

    `token_provider` stands in for a jar of Spark's where that can't be fetched. Raises FetchError and
    NoJavaError.
    """

    def __init__(self, root: Path, token_provider: Path | None) -> None:
        self._root = root
        self.jars = source_jars(token_provider)
        self._broker = Broker(root / "broker")
        self._feed: TopicFeed | None = None
        self.incoming = f"kafka:{self._broker.servers}/{_TOPIC}"

    def open(self, *, scale: float, parts: int, interval_s: float | None) -> tuple[Tables, Delivery]:
        """Start a broker and a producer; return the tables, and who sends lineitem."""
        tables = generate(self._root / "tables", scale=scale, parts=parts, lineitem_as="csv")
        self._broker.open()
        self._broker.create_topic(_TOPIC, _PARTITIONS)
        connect = partial(self._broker.producer, _TOPIC)
        self._feed = TopicFeed(tables.lineitem, connect, interval_s=interval_s or _RECORDS_INTERVAL_S)
        return tables, self._feed

    def close(self) -> None:
        """End the feed, the producer and the broker."""
        if self._feed is not None:
            self._feed.stop()
        self._broker.close()

    def checks(self, chronicle: Chronicle, comparison: Mapping[str, Mapping[str, int]]) -> list[Check]:
        """Check that nothing got lost before the queries, and that they say how far behind they are."""
        sent = 0 if self._feed is None else self._feed.rows
        return [check_sent(sent, comparison), check_offsets(chronicle)]

    def left_over(self) -> list[str]:
        """Name what is left of the broker."""
        return self._broker.left_over()
