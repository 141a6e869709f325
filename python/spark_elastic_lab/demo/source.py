"""The demonstration's input: files in a folder, or a topic of a Kafka broker."""

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

# ---- Delivery at a steady rate, as from an upstream system; mostly parts of a table.


# The arrival time of the last part is far enough ahead to close every window before it.
_LAST_ARRIVAL_AHEAD_S = 3600.0


class Steady(ABC):
    """A thread that delivers something every `interval_s` seconds until it is stopped."""

    def __init__(self, *, interval_s: float) -> None:
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Start delivering; the first delivery is immediate."""
        self._thread.start()

    def pace(self, interval_s: float) -> None:
        """Change the interval to `interval_s` seconds, starting after the next delivery."""
        self._interval_s = interval_s

    def stop(self) -> None:
        """Stop delivering; return once everything has arrived. No end marker is sent."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    @abstractmethod
    def deliver(self) -> None:
        """Make the next delivery."""

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            self.deliver()
            # After a stall, continue at the usual rate: a burst would hide the stall's effect.
            due = max(due + self._interval_s, time.monotonic())


class Delivery(Steady):
    """Delivers `parts` one by one, over and over, until it is finished.

    Other threads may deliver at the same time: a lock keeps part numbers and arrival times in order.
    """

    def __init__(self, parts: Sequence[Path], *, interval_s: float) -> None:
        if not parts:
            raise ValueError("there are no files to feed")
        super().__init__(interval_s=interval_s)
        self._parts = parts
        self._one = threading.Lock()
        self.delivered = 0

    def finish(self) -> None:
        """Deliver one last part with a late arrival time; return once everything has arrived."""
        self.stop()
        self.deliver(arrival_s=time.time() + _LAST_ARRIVAL_AHEAD_S)

    def deliver(self, *, arrival_s: float | None = None) -> None:
        """Deliver the next part; its arrival time (epoch seconds) defaults to now."""
        with self._one:
            part = self._parts[self.delivered % len(self._parts)]
            self._deliver(part, self.delivered, time.time() if arrival_s is None else arrival_s)
            self.delivered += 1

    @abstractmethod
    def _deliver(self, part: Path, number: int, arrival_s: float) -> None:
        """Deliver a part under a unique number."""


# ---- Parts that arrive as records in a Kafka topic.


class TopicFeed(Delivery):
    """Sends the lines of parts as CSV, each preceded by its arrival time; the key is the line's first column.

    `connect` starts a producer. `rows` counts the lines sent.
    """

    def __init__(self, parts: Sequence[Path], connect: Callable[[], Producer], *, interval_s: float) -> None:
        super().__init__(parts, interval_s=interval_s)
        self._connect = connect
        self._producer = connect()
        self.rows = 0

    def finish(self) -> None:
        """Finish like every delivery. Raises ProcessFailure if a record was lost."""
        self.stop()
        # The last part makes all earlier lines late, so it must not reach one partition before the rest has
        # reached the others.
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
        next(lines)  # the header with the column names
        for line in lines:
            yield line.partition(",")[0], f"{arrival_ms},{line.rstrip()}"


# ---- Parts that arrive as files in a folder.


class Feed(Delivery):
    """Copies parts into `incoming`.

    A file appears complete (written elsewhere, then renamed); its modification time is its arrival time.
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
# Lines of CSV cost a small machine more than Parquet columns do.
_RECORDS_INTERVAL_S = 1.0
_TOPIC = "lineitem"
_PARTITIONS = 3


class Source(ABC):
    """Input that arrives at a place, from `open` to `close`.

    `incoming` is the application's name for that place; `jars` are the jars Spark needs to read from it.
    """

    incoming: str
    jars: Sequence[Path] = ()

    @abstractmethod
    def open(self, *, scale: float, parts: int, interval_s: float | None) -> tuple[Tables, Delivery]:
        """Return the tables and the delivery of lineitem, which has not started yet.

        lineitem at `scale` is delivered in this number of `parts`, one every `interval_s` seconds, or at
        the source's own rate if that is None. Raises ProcessFailure or DataFailure.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop everything that `open` started, even if `open` failed."""

    def checks(self, chronicle: Chronicle, comparison: Mapping[str, Mapping[str, int]]) -> list[Check]:
        """Return the checks that only this source supports."""
        return []

    def left_over(self) -> list[str]:
        """Name the processes and files that remain a moment after `close`."""
        return []


class FileSource(Source):
    """Parquet files that arrive in a folder below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._feed: Feed | None = None
        self.incoming = str(root / "incoming")

    def open(self, *, scale: float, parts: int, interval_s: float | None) -> tuple[Tables, Delivery]:
        """Return the tables, with lineitem in files, and the feed that copies them."""
        tables = generate(self._root / "tables", scale=scale, parts=parts)
        self._feed = Feed(tables.lineitem, Path(self.incoming), interval_s=interval_s or _FILE_INTERVAL_S)
        return tables, self._feed

    def close(self) -> None:
        """Stop the feed."""
        if self._feed is not None:
            self._feed.stop()


class KafkaSource(Source):
    """Lines of CSV in a topic of a broker whose folder is below `root`.

    `token_provider` replaces one of Spark's jars where that cannot be fetched. Raises FetchError and
    NoJavaError.
    """

    def __init__(self, root: Path, token_provider: Path | None) -> None:
        self._root = root
        self.jars = source_jars(token_provider)
        self._broker = Broker(root / "broker")
        self._feed: TopicFeed | None = None
        self.incoming = f"kafka:{self._broker.servers}/{_TOPIC}"

    def open(self, *, scale: float, parts: int, interval_s: float | None) -> tuple[Tables, Delivery]:
        """Start a broker and a producer; return the tables and the feed that sends lineitem."""
        tables = generate(self._root / "tables", scale=scale, parts=parts, lineitem_as="csv")
        self._broker.open()
        self._broker.create_topic(_TOPIC, _PARTITIONS)
        connect = partial(self._broker.producer, _TOPIC)
        self._feed = TopicFeed(tables.lineitem, connect, interval_s=interval_s or _RECORDS_INTERVAL_S)
        return tables, self._feed

    def close(self) -> None:
        """Stop the feed, the producer and the broker."""
        if self._feed is not None:
            self._feed.stop()
        self._broker.close()

    def checks(self, chronicle: Chronicle, comparison: Mapping[str, Mapping[str, int]]) -> list[Check]:
        """Check that no row was lost before the queries, and that they report how far behind they are."""
        sent = 0 if self._feed is None else self._feed.rows
        return [check_sent(sent, comparison), check_offsets(chronicle)]

    def left_over(self) -> list[str]:
        """Name the remains of the broker."""
        return self._broker.left_over()
