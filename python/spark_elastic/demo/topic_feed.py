"""Parts that arrive as records of a Kafka topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from spark_elastic.demo.broker import Producer
from spark_elastic.demo.delivery import Delivery


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
