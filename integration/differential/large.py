"""Programs that need much memory: few rows become many, and an operator has to hold them."""

from __future__ import annotations

from hypothesis import strategies as st

from integration.differential.operators import kind
from integration.differential.program import Action, Chain, Kind, Program, Size, Step
from integration.differential.sources import source

#: With these values, a task of plain Spark fits into `HEAP` in every program.
ROWS, HEAP, SLOTS = 20_000, "512m", (2, 4)

_SOURCES = [
    source(
        "few rows",
        "spark.range(0, {rows}, 1, 2).selectExpr('id', 'id % 7 AS k', 'id AS v', '\"s\" AS s')",
        rows=st.just(ROWS),
    ),
    source(
        "few rows of a file", "read(spark, 'parquet', files(DATA, 'parquet', {rows}, 2))", rows=st.just(ROWS)
    ),
]
_GROWTH = [
    kind(
        "explode much",
        "{0}.selectExpr('id', 'k', 'explode(sequence(1L, {n}L)) AS v', 's')"
        ".selectExpr('id * {n} + v AS id', 'k', 'xxhash64(id, v) % 1000 AS v', 's')",
        lambda one, n: Size(one.rows * n),
        n=st.sampled_from([150, 100]),
    ),
    kind(
        "join of a key with all",
        "{0}.join(spark.range({n}).selectExpr('id % 7 AS k', 'id AS j'), 'k')"
        ".selectExpr('id * {n} + j AS id', 'k', 'xxhash64(id, j) % 1000 AS v', 's')",
        lambda one, n: Size(one.rows * n // 7 + one.rows),
        n=st.sampled_from([1000, 700]),
    ),
]
_HOLDING = [
    kind(
        "hash join",
        "spark.range(2000).selectExpr('id * 11 AS id').join({0}.hint('shuffle_hash'), 'id')",
    ),
    kind(
        "hash join of all",
        "{0}.selectExpr('id').join({0}.hint('shuffle_hash'), 'id')",
    ),
    kind("sort of all", "{0}.orderBy('v', 'id')"),
    kind("distinct of all", "{0}.distinct()"),
    kind(
        "window of many keys",
        "{0}.withColumn('v', F.sum('v').over(Window.partitionBy(F.expr('id % 5000')).orderBy('id')))",
    ),
    kind(
        "lists",
        "{0}.groupBy(F.expr('id % 20000')).agg(F.collect_list('v').alias('l'))"
        ".selectExpr('`(id % 20000)` AS id', '1L AS k', 'cast(size(l) AS LONG) AS v', '\"s\" AS s')",
    ),
    kind(
        "many groups",
        "{0}.groupBy('id').agg(F.max('v').alias('v')).selectExpr('id', '1L AS k', 'v', '\"s\" AS s')",
    ),
]


def _one(kinds: list[Kind]) -> st.SearchStrategy[Step]:
    return st.sampled_from(kinds).flatmap(
        lambda one: st.builds(lambda **values: Step(one, values), **one.arguments)
    )


# Plain Spark coalesces partitions up to this size, so that a task holds little.
_SMALL = ("spark.sql.adaptive.advisoryPartitionSizeInBytes", "2m")
_SETTINGS = st.sampled_from([(_SMALL,), (_SMALL, ("spark.sql.shuffle.partitions", "400"))])


def large_programs() -> st.SearchStrategy[Program]:
    """Return programs that take some seconds."""
    return st.builds(
        lambda first, growth, holding, action, settings: Program(
            Chain((first, growth, holding)), (Action(action),), settings
        ),
        _one(_SOURCES),
        _one(_GROWTH),
        _one(_HOLDING),
        st.sampled_from(["summed", "counted"]),
        _SETTINGS,
    )
