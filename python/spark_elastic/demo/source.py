"""Where the demonstration's input comes from: files in a folder, or a topic of a Kafka broker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from spark_elastic.demo.broker import Broker
from spark_elastic.demo.check import Check, check_offsets, check_sent
from spark_elastic.demo.chronicle import Chronicle
from spark_elastic.demo.data import Tables, generate
from spark_elastic.demo.delivery import Delivery
from spark_elastic.demo.feed import Feed
from spark_elastic.demo.kafka_jars import source_jars
from spark_elastic.demo.topic_feed import TopicFeed

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
