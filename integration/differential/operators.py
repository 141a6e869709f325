"""Operators: each takes frames with the four columns and returns one with the same four."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from integration.differential.program import Kind, Promise, Size

N = st.sampled_from([3, 1, 2, 7, 20])
_SEED = st.sampled_from([5, 42])


def _same(one: Size, **_: Any) -> Size:
    return one


def _most(number: int) -> Any:
    return lambda one, **_: Size(min(one.rows, number), one.alike)


def _times(number: int) -> Any:
    return lambda one, **_: Size(one.rows * number, one.alike * number)


def union(one: Size, other: Size, **_: Any) -> Size:
    return Size(one.rows + other.rows, one.alike + other.alike)


def joined(one: Size, other: Size, **_: Any) -> Size:
    alike = one.alike * other.alike
    return Size(
        min(one.rows * other.alike, other.rows * one.alike) + one.rows + other.rows, alike + one.alike
    )


def kind(name: str, text: str, size: Any = _same, frames: int = 0, **more: Any) -> Kind:
    of = {
        key: more.pop(key)
        for key in tuple(more)
        if key in ("promise", "narrow", "stable", "fails", "counts", "before")
    }
    return Kind(name=name, text=text, size=size, frames=frames, arguments=more, **of)


FOUR = "'id', 'k', 'v', 's'"
KEY = st.sampled_from(["id", "k", "s"])
_PANDAS = "'id long, k long, v long, s string'"

NARROW = [
    kind(
        "filter",
        "{0}.where('{what}')",
        stable=True,
        what=st.sampled_from(["v % 3 = 0", "k > 2", "id < 50", "s IN ('s1', 's3')", "v IS NULL", "false"]),
    ),
    kind(
        "column",
        "{0}.withColumn('v', F.expr('{what}'))",
        narrow=True,
        stable=True,
        what=st.sampled_from(
            ["v * 2 + k", "xxhash64(id, v) % 1000", "CASE WHEN k = 1 THEN NULL ELSE v END", "length(s) + v"]
        ),
    ),
    kind(
        "explode",
        "{0}.selectExpr('id', 'k', 'explode(sequence(1L, {n}L)) AS v', 's')",
        lambda one, n: Size(one.rows * n, one.alike * n),
        n=st.sampled_from([2, 5, 30]),
    ),
    kind(
        "explode what is split",
        "{0}.select('id', 'k', 'v', F.explode(F.split('s', '')).alias('s'))",
        _times(3),
    ),
    kind(
        "rows of rows",
        "{0}.selectExpr('id', 'stack(3, k, v, id, v, k, 3L) AS (k, v)', 's')",
        _times(3),
    ),
    kind(
        "a table function",
        "{0}.lateralJoin(spark.range(2).select(F.col('id').alias('n'))).select('id', 'k', "
        "F.col('n').alias('v'), 's')",
        _times(2),
    ),
    kind(
        "unpivot",
        "{0}.unpivot(['id', 's'], ['k', 'v'], 'n', 'v').selectExpr('id', '1L AS k', 'v', 's')",
        _times(2),
    ),
    kind(
        "lateral view",
        "spark.sql('SELECT id, k, n AS v, s FROM {{a}} LATERAL VIEW explode(array(k, v)) AS n', a={0})",
        _times(2),
    ),
]
WITH_PYTHON = [
    kind(
        "Python function",
        "{0}.withColumn('v', F.udf(lambda v: None if v is None else v + 1, 'long')('v'))",
        narrow=True,
        stable=True,
    ),
    kind(
        "pandas function",
        "{0}.withColumn('v', F.pandas_udf(lambda v: (v.fillna(0) + 1).astype('int64'), 'long')('v'))",
        narrow=True,
        stable=True,
    ),
    kind("pandas batches", "{0}.mapInPandas(lambda batches: (b[b.k > 1] for b in batches), {0}.schema)"),
    kind("Arrow batches", "{0}.mapInArrow(lambda batches: batches, {0}.schema)"),
    kind("rows of an RDD", "{0}.rdd.filter(lambda r: r.id % 2 == 0).toDF(SCHEMA)"),
    kind("pandas groups", "{0}.groupBy('k').applyInPandas(lambda g: g.assign(v=len(g)), " + _PANDAS + ")"),
    kind("Arrow groups", "{0}.groupBy('k').applyInArrow(lambda g: g, " + _PANDAS + ")"),
    kind(
        "cogroup",
        "{0}.groupBy('k').cogroup({1}.groupBy('k')).applyInPandas(lambda a, b: a.assign(v=len(b)), "
        + _PANDAS
        + ")",
        lambda one, other: one,
        1,
    ),
]
PLACED = [
    kind("repartition", "{0}.repartition({n})", counts=True, n=N),
    kind("repartition by key", "{0}.repartition({n}, '{key}')", counts=True, n=N, key=KEY),
    kind("repartition by keys alone", "{0}.repartition('{key}')", key=KEY),
    kind("repartition by range", "{0}.repartitionByRange({n}, 'id')", counts=True, n=N),
    kind("rebalance", "{0}.hint('rebalance')"),
    kind("coalesce", "{0}.coalesce({n})", n=N),
    kind(
        "sort",
        "{0}.orderBy(F.col('{key}'){way}, " + FOUR + ")",
        promise=Promise.ORDER,
        key=KEY,
        way=st.sampled_from(["", ".desc()", ".desc_nulls_first()"]),
    ),
    kind("sort in partitions", "{0}.sortWithinPartitions('id')"),
    kind("cache", "{0}.cache()", stable=True, narrow=True),
    kind("persist on disk", "{0}.persist(StorageLevel.DISK_ONLY)", stable=True, narrow=True),
    kind("local checkpoint", "{0}.localCheckpoint()", stable=True, narrow=True),
    kind("checkpoint", "{0}.checkpoint()", stable=True, narrow=True),
    kind(
        "view",
        "(view := {0}).createOrReplaceTempView('seen') or spark.sql('SELECT * FROM seen')",
        stable=True,
        narrow=True,
    ),
    kind("hint of a number", "{0}.hint('repartition', {n})", counts=True, n=N),
    kind("hint of few", "{0}.hint('coalesce', {n})", n=N),
    kind("distribute by", "spark.sql('SELECT * FROM {{a}} DISTRIBUTE BY {key}', a={0})", key=KEY),
    kind("cluster by", "spark.sql('SELECT * FROM {{a}} CLUSTER BY {key}', a={0})", key=KEY),
    kind("observe", "{0}.observe('seen', F.count('*').alias('n'))", stable=True, narrow=True),
]
# Their rows depend on the distribution over partitions: plain Spark only guarantees the same result again.
LOOSE = [
    kind("limit", "{0}.limit({n})", _most(20), promise=Promise.COUNT, n=N),
    kind("limit of sorted", "{0}.orderBy(" + FOUR + ").limit({n})", _most(20), promise=Promise.ORDER, n=N),
    kind("offset of sorted", "{0}.orderBy(" + FOUR + ").offset({n})", promise=Promise.ORDER, n=N),
    kind("offset", "{0}.offset({n})", promise=Promise.COUNT, n=N),
    kind(
        "sample",
        "{0}.sample({share}, {seed})",
        promise=Promise.NOTHING,
        share=st.sampled_from([0.5, 0.1]),
        seed=_SEED,
    ),
    kind(
        "sample with replacement",
        "{0}.sample(True, 0.7, {seed})",
        _times(4),
        promise=Promise.NOTHING,
        seed=_SEED,
    ),
    kind(
        "sample by key", "{0}.sampleBy('k', {{1: 0.5, 2: 0.2}}, {seed})", promise=Promise.NOTHING, seed=_SEED
    ),
    kind(
        "random column",
        "{0}.withColumn('v', (F.rand({seed}) * 1000).cast('long'))",
        promise=Promise.COUNT,
        seed=_SEED,
    ),
    kind("random filter", "{0}.where(F.rand({seed}) < 0.5)", promise=Promise.NOTHING, seed=_SEED),
    kind("ids", "{0}.withColumn('v', F.monotonically_increasing_id())", promise=Promise.COUNT),
    kind("partition ids", "{0}.withColumn('v', F.spark_partition_id().cast('long'))", promise=Promise.COUNT),
    kind(
        "numbered rows",
        "{0}.rdd.zipWithIndex().map(lambda r: (r[1], r[0].k, r[0].v, r[0].s)).toDF(SCHEMA)",
        promise=Promise.COUNT,
    ),
    kind("a part of a split", "{0}.randomSplit([0.7, 0.3], {seed})[0]", promise=Promise.NOTHING, seed=_SEED),
    kind(
        "zip",
        "{0}.select('id').rdd.zip({0}.select('v').rdd).map(lambda r: (r[0].id, r[0].id, r[1].v, 's'))"
        ".toDF(SCHEMA)",
        promise=Promise.COUNT,
    ),
    kind(
        "attached index",
        "{0}.pandas_api().reset_index().to_spark().selectExpr('index AS id', 'k', 'v', 's')",
        promise=Promise.COUNT,
    ),
    kind(
        "table sample",
        "spark.sql('SELECT * FROM {{a}} TABLESAMPLE (30 PERCENT) REPEATABLE ({seed})', a={0})",
        promise=Promise.NOTHING,
        seed=_SEED,
    ),
]
# These only result in an error, for some rows at least.
FAILING = [
    kind("divide by zero", "{0}.withColumn('v', F.expr('v div (k - 3)'))", fails=True),
    kind("bad cast", "{0}.withColumn('v', F.col('s').cast('long'))", fails=True),
    kind("raise", "{0}.where(F.expr(\"if(id = 7, raise_error('seven'), true)\"))", fails=True),
    kind("Python error", "{0}.withColumn('v', F.udf(lambda v: 1 // (v - 500), 'long')('v'))", fails=True),
    kind("no such column", "{0}.select('id', 'k', 'nothing', 's')", fails=True),
]
