"""Tables of TPC-H in which a few orders have most of the lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_KEY = "l_orderkey"
_SEED = 1


def skew(tables: Path, folder: Path, exponent: float) -> None:
    """Rewrite `tables` into `folder`; the order of each line is drawn by Zipf's law, exponent > 1."""
    folder.mkdir()
    for table in tables.glob("*.parquet"):
        if table.stem != "lineitem":
            (folder / table.name).symlink_to(table.resolve())
    chance = np.random.default_rng(_SEED)
    orders = pq.read_table(tables / "orders.parquet", columns=["o_orderkey"])["o_orderkey"].to_numpy()
    # The orders with many lines are not the first ones.
    keys = chance.permutation(orders)
    lines = pq.ParquetFile(tables / "lineitem.parquet")
    place = lines.schema_arrow.get_field_index(_KEY)
    with pq.ParquetWriter(folder / "lineitem.parquet", lines.schema_arrow) as out:
        for number in range(lines.num_row_groups):
            group = lines.read_row_group(number)
            drawn = keys[(chance.zipf(exponent, len(group)) - 1) % len(keys)]
            out.write_table(group.set_column(place, lines.schema_arrow.field(place), pa.array(drawn)))
