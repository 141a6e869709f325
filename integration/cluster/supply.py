"""A feed into which more files can be thrown while it runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from spark_elastic.demo.feed import Feed


class Supply(Feed):
    """A feed for two threads: files get their numbers, and their times of arrival, one after the other."""

    def __init__(self, parts: Sequence[Path], incoming: Path, *, interval_s: float) -> None:
        super().__init__(parts, incoming, interval_s=interval_s)
        self._one = threading.Lock()

    def deliver(self, *, arrival_s: float | None = None) -> Path:
        with self._one:
            return super().deliver(arrival_s=arrival_s)
