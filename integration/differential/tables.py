"""Programs over Delta Lake tables; Delta has its own rules, catalog, sources and commands."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from integration.differential.program import Program, Size
from integration.differential.sources import SOURCES, source
from integration.differential.strategies import FORMS, programs

_KEPT = ("files", "files twice", "folders of a table", "many files", "range", "rows of the driver", "buckets")
#: The rows of a new table after some changes.
_TABLE = (
    "changed(spark, OUT, read(spark, 'parquet', files(DATA, 'parquet', {rows}, {count})), "
    "{by!r}, {changes!r})"
)
_CHANGES = st.lists(
    st.sampled_from(["append", "delete", "update", "merge", "optimize", "cluster"]), max_size=3, unique=True
)


def _grown(rows: int, changes: list[str], **_: Any) -> Size:
    return Size(2 * rows + 10, 2)


_DELTA = [
    source(
        name,
        _TABLE + behind,
        _grown,
        rows=st.sampled_from([100, 1000, 3000, 0]),
        count=st.sampled_from([2, 1, 8]),
        by=st.sampled_from([None, None, "k"]),
        changes=_CHANGES,
    )
    for name, behind in (
        ("Delta table", ""),
        ("part of a Delta table", ".where('k < 3')"),
        ("files of a Delta table", ".select('id', 'k', 'v', F.lit('s').alias('s')).where('v % 2 = 0')"),
    )
]


def table_programs() -> st.SearchStrategy[Program]:
    """Return programs, most of them reading and some of them writing a Delta table."""
    others = [kind for kind in SOURCES if kind.name in _KEPT]
    return programs(sources=[*_DELTA, *others], forms=[*FORMS, "delta", "delta"])
