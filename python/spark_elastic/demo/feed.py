"""Parts that arrive as files in a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from spark_elastic.demo.delivery import Delivery


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
