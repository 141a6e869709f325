"""Input of the applications that keep the values of keys, and their expected and actual output."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


class Values:
    """A folder of Parquet files, each with one value of every key; new files have `keys` keys."""

    def __init__(self, folder: Path, keys: int) -> None:
        folder.mkdir()
        self.folder = folder
        self.keys = keys
        self._parts = 0

    def put(self, files: int) -> None:
        """Add files, each at once and complete."""
        for _ in range(files):
            keys = pa.array(range(self.keys), pa.int64())
            values = pc.add(pc.multiply(keys, 3), self._parts)
            hidden = self.folder / f".{self._parts}.new"
            pq.write_table(pa.table({"key": keys, "value": values}), hidden)
            os.replace(hidden, self.folder / f"{self._parts:05d}.parquet")
            self._parts += 1

    def expected(self) -> pa.Table:
        """Return count and sum by key, computed by another engine than the tested one."""
        totals = pq.read_table(self.folder).group_by("key").aggregate([("value", "count"), ("value", "sum")])
        return totals.rename_columns(["key", "n", "total"]).sort_by("key")

    def pairs(self) -> pa.Table:
        """Return each key with each pair of its values, as a batch query gives them."""
        one, other = (pq.read_table(self.folder).rename_columns(["key", name]) for name in ("one", "other"))
        return _in_order(one.join(other, "key", join_type="inner"))


def pairs(output: Path) -> pa.Table:
    """Return all written pairs, including duplicates."""
    batches = [pq.read_table(path) for path in sorted(output.iterdir()) if path.is_dir()]
    return _in_order(pa.concat_tables(batches))


def _in_order(rows: pa.Table) -> pa.Table:
    columns = ["key", "one", "other"]
    return rows.select(columns).sort_by([(name, "ascending") for name in columns])


def last_values(output: Path) -> pa.Table:
    """Return the last count and sum of each key over all written micro-batches."""
    last: dict[int, tuple[int, int]] = {}
    for batch in sorted(done.parent for done in output.glob("*/_SUCCESS")):
        table = pq.read_table(batch)
        columns = (table[name].to_pylist() for name in ("key", "n", "total"))
        last.update((key, (n, total)) for key, n, total in zip(*columns, strict=True))
    keys = sorted(last)
    return pa.table(
        {"key": keys, "n": [last[key][0] for key in keys], "total": [last[key][1] for key in keys]}
    )
