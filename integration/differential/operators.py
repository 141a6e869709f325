"""Operators: each takes frames with the four columns and gives one with the same four."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from integration.differential.program import Kind, Promise, Size

_N = st.sampled_from([3, 1, 2, 7, 20])
_SEED = st.sampled_from([5, 42])


def _same(one: Size, **_: Any) -> Size:
    return one


def _most(number: int) -> Any:
    return lambda one, **_: Size(min(one.rows, number), one.alike)


def _sum(one: Size, other: Size, **_: Any) -> Size:
    return Size(one.rows + other.rows, one.alike + other.alike)


def _joined(one: Size, other: Size, **_: Any) -> Size:
    alike = one.alike * other.alike
    return Size(
        min(one.rows * other.alike, other.rows * one.alike) + one.rows + other.rows, alike + one.alike
    )


def _kind(name: str, text: str, size: Any = _same, frames: int = 0, **more: Any) -> Kind:
    of = {
        key: more.pop(key)
        for key in tuple(more)
        if key in ("promise", "narrow", "stable", "fails", "counts", "before")
    }
    return Kind(name=name, text=text, size=size, frames=frames, arguments=more, **of)


_FOUR = "'id', 'k', 'v', 's'"
_KEY = st.sampled_from(["id", "k", "s"])
_PANDAS = "'id long, k long, v long, s string'"

NARROW = [
    _kind(
        "filter",
        "{0}.where('{what}')",
        stable=True,
        what=st.sampled_from(["v % 3 = 0", "k > 2", "id < 50", "s IN ('s1', 's3')", "v IS NULL", "false"]),
    ),
    _kind(
        "column",
        "{0}.withColumn('v', F.expr('{what}'))",
        narrow=True,
        stable=True,
        what=st.sampled_from(
            ["v * 2 + k", "xxhash64(id, v) % 1000", "CASE WHEN k = 1 THEN NULL ELSE v END", "length(s) + v"]
        ),
    ),
    _kind(
        "explode",
        "{0}.select('id', 'k', F.explode(F.sequence(F.lit(1), F.lit({n}))).cast('long').alias('v'), 's')",
        lambda one, n: Size(one.rows * n, one.alike * n),
        n=st.sampled_from([2, 5, 30]),
    ),
    _kind(
        "explode what is split",
        "{0}.select('id', 'k', 'v', F.explode(F.split('s', '')).alias('s'))",
        lambda one: Size(one.rows * 3, one.alike * 3),
    ),
    _kind(
        "rows of rows",
        "{0}.selectExpr('id', 'stack(3, k, v, id, v, k, 3L) AS (k, v)', 's')",
        lambda one: Size(one.rows * 3, one.alike * 3),
    ),
    _kind(
        "Python function",
        "{0}.withColumn('v', F.udf(lambda v: None if v is None else v + 1, 'long')('v'))",
        narrow=True,
        stable=True,
    ),
    _kind(
        "pandas function",
        "{0}.withColumn('v', F.pandas_udf(lambda v: (v.fillna(0) + 1).astype('int64'), 'long')('v'))",
        narrow=True,
        stable=True,
    ),
    _kind("pandas batches", "{0}.mapInPandas(lambda batches: (b[b.k > 1] for b in batches), {0}.schema)"),
    _kind("Arrow batches", "{0}.mapInArrow(lambda batches: batches, {0}.schema)"),
    _kind("rows of an RDD", "{0}.rdd.filter(lambda r: r.id % 2 == 0).toDF(SCHEMA)"),
    _kind(
        "a table function",
        "{0}.lateralJoin(spark.range(2).select(F.col('id').alias('n'))).select('id', 'k', F.col('n').alias('v'), 's')",
        lambda one: Size(one.rows * 2, one.alike * 2),
    ),
]
_AGGREGATED = st.sampled_from(
    [
        "sum(v)",
        "max(v)",
        "count(v)",
        "count(DISTINCT v)",
        "count(DISTINCT s)",
        "cast(avg(v) AS LONG)",
        "cast(percentile(v, 0.5) AS LONG)",
        "bit_xor(xxhash64(v, s)) % 1000",
        "size(collect_set(v))",
        "approx_count_distinct(v)",
    ]
)
WIDE = [
    _kind("distinct", "{0}.distinct()"),
    _kind(
        "aggregate",
        "{0}.groupBy('{key}').agg(F.expr('{what}').alias('n')).select(F.expr('cast(xxhash64({key}) % 1000 AS LONG) AS id'), F.col('n').alias('k'), F.col('n').alias('v'), F.col('{key}').cast('string').alias('s'))",
        lambda one, **_: Size(one.rows, one.rows // 500 + 2),
        key=_KEY,
        what=_AGGREGATED,
    ),
    _kind(
        "aggregate of all",
        "{0}.agg(F.expr('{what}').alias('id')).select('id', F.col('id').alias('k'), F.col('id').alias('v'), F.lit('s').alias('s'))",
        lambda one, **_: Size(1),
        what=_AGGREGATED,
    ),
    _kind(
        "rollup",
        "{0}.rollup('k', 's').agg(F.sum('v').alias('v')).select(F.col('v').alias('id'), 'k', 'v', 's')",
        lambda one: Size(one.rows * 3, 200),
    ),
    _kind(
        "cube",
        "{0}.cube('k', 's').agg(F.count('*').alias('v')).select(F.col('v').alias('id'), 'k', 'v', 's')",
        lambda one: Size(one.rows * 4, 200),
    ),
    _kind(
        "pivot",
        "{0}.groupBy('s').pivot('k', [1, 2]).agg(F.sum('v')).select(F.col('1').alias('id'), F.col('2').alias('k'), F.lit(0).cast('long').alias('v'), 's')",
        lambda one: Size(one.rows, 20),
    ),
    _kind(
        "first of a key",
        "{0}.groupBy('k').agg(F.first('id').alias('id')).select('id', 'k', F.col('id').alias('v'), F.lit('s').alias('s'))",
        promise=Promise.COUNT,
    ),
    _kind("duplicates dropped", "{0}.dropDuplicates(['k'])", promise=Promise.COUNT),
    _kind(
        "window rank", "{0}.withColumn('v', F.rank().over(Window.partitionBy('k').orderBy('v')).cast('long'))"
    ),
    _kind(
        "window sum",
        "{0}.withColumn('v', F.sum('v').over(Window.partitionBy('{key}').orderBy('id', 'v', 's', 'k')))",
        key=_KEY,
    ),
    _kind("window of all", "{0}.withColumn('v', F.lag('v').over(Window.orderBy('id', 'v', 'k', 's')))"),
    _kind(
        "top of each key",
        "{0}.withColumn('n', F.rank().over(Window.partitionBy('k').orderBy('id', 'v', 's'))).where('n <= {n}').select("
        + _FOUR
        + ")",
        n=_N,
    ),
    _kind("pandas groups", "{0}.groupBy('k').applyInPandas(lambda g: g.assign(v=len(g)), " + _PANDAS + ")"),
    _kind("Arrow groups", "{0}.groupBy('k').applyInArrow(lambda g: g, " + _PANDAS + ")"),
    _kind(
        "cogroup",
        "{0}.groupBy('k').cogroup({1}.groupBy('k')).applyInPandas(lambda a, b: a.assign(v=len(b)), "
        + _PANDAS
        + ")",
        lambda one, other: one,
        1,
    ),
    _kind(
        "scalar subquery",
        "spark.sql('SELECT id, k, v - (SELECT min(v) FROM {{a}}) AS v, s FROM {{a}}', a={0})",
    ),
    _kind(
        "in subquery",
        "spark.sql('SELECT * FROM {{a}} WHERE {no} id IN (SELECT id FROM {{b}} WHERE v % 2 = 0)', a={0}, b={1})",
        lambda one, other, no: one,
        1,
        no=st.sampled_from(["", "NOT"]),
    ),
    _kind(
        "exists",
        "spark.sql('SELECT * FROM {{a}} a WHERE EXISTS (SELECT 1 FROM {{b}} b WHERE a.id = b.id AND b.v > 3)', a={0}, b={1})",
        lambda one, other: one,
        1,
    ),
    _kind(
        "correlated subquery",
        "spark.sql('SELECT id, k, (SELECT max(v) FROM {{b}} b WHERE b.k = a.k) AS v, s FROM {{a}} a', a={0}, b={1})",
        lambda one, other: one,
        1,
    ),
    _kind(
        "common table",
        "spark.sql('WITH t AS (SELECT k, sum(v) AS v FROM {{a}} GROUP BY k) SELECT x.v AS id, x.k, y.v, CAST(x.k AS STRING) AS s FROM t x JOIN t y ON x.k = y.k', a={0})",
        lambda one: Size(one.rows, 50),
    ),
]
_HOW = st.sampled_from(["inner", "left", "right", "full"])
_HINT = st.sampled_from(
    ["", ".hint('broadcast')", ".hint('merge')", ".hint('shuffle_hash')", ".hint('shuffle_replicate_nl')"]
)
_MERGED = ".selectExpr('coalesce(l.id, r.id) AS id', 'coalesce(l.k, r.k) AS k', 'coalesce(l.v, 0) + coalesce(r.v, 0) AS v', 'concat_ws(\"\", l.s, r.s) AS s')"
JOINS = [
    _kind(
        "join",
        "{0}.alias('l').join({1}.alias('r'){hint}, F.expr('l.id = r.id'), '{how}')" + _MERGED,
        _joined,
        1,
        how=_HOW,
        hint=_HINT,
    ),
    _kind(
        "join of a key",
        "{0}.alias('l').join({1}.groupBy('k').agg(F.max('id').alias('id'), F.sum('v').alias('v'), F.min('s').alias('s')).alias('r'){hint}, F.expr('l.k = r.k'), '{how}')"
        + _MERGED,
        lambda one, other, **_: Size(one.rows + other.rows, one.alike + other.alike),
        1,
        how=_HOW,
        hint=_HINT,
    ),
    _kind(
        "semi join",
        "{0}.join({1}{hint}, 'id', '{how}').select(" + _FOUR + ")",
        lambda one, other, **_: one,
        1,
        how=st.sampled_from(["left_semi", "left_anti"]),
        hint=_HINT,
    ),
    _kind(
        "join with itself",
        "{0}.alias('l').join({0}.alias('r'), F.expr('l.id = r.id'), '{how}')" + _MERGED,
        lambda one, **_: _joined(one, one),
        how=_HOW,
    ),
    _kind(
        "join of a range",
        "{0}.alias('l').join({1}.where('id < 20').alias('r'), F.expr('l.id BETWEEN r.id AND r.id + 2'), '{how}')"
        + _MERGED,
        lambda one, other, **_: Size(one.rows * (4 * other.alike) + other.rows, one.alike * 4 * other.alike),
        1,
        how=_HOW,
    ),
    _kind(
        "cross join",
        "{0}.crossJoin({1}.agg(F.count('*').alias('n'))).select('id', 'k', F.col('n').alias('v'), 's')",
        lambda one, other: one,
        1,
    ),
    _kind("union", "{0}.union({1})", _sum, 1),
    _kind("union with itself", "{0}.unionByName({0})", lambda one: Size(2 * one.rows, 2 * one.alike)),
    _kind("intersect", "{0}.intersect({1})", lambda one, other: one, 1),
    _kind("intersect all", "{0}.intersectAll({1})", lambda one, other: one, 1),
    _kind("except", "{0}.subtract({1})", lambda one, other: one, 1),
    _kind("except all", "{0}.exceptAll({1})", lambda one, other: one, 1),
]
PLACED = [
    _kind("repartition", "{0}.repartition({n})", counts=True, n=_N),
    _kind("repartition by key", "{0}.repartition({n}, '{key}')", counts=True, n=_N, key=_KEY),
    _kind("repartition by keys alone", "{0}.repartition('{key}')", key=_KEY),
    _kind("repartition by range", "{0}.repartitionByRange({n}, 'id')", counts=True, n=_N),
    _kind("rebalance", "{0}.hint('rebalance')"),
    _kind("coalesce", "{0}.coalesce({n})", n=_N),
    _kind(
        "sort",
        "{0}.orderBy(F.col('{key}'){way}, " + _FOUR + ")",
        promise=Promise.ORDER,
        key=_KEY,
        way=st.sampled_from(["", ".desc()", ".desc_nulls_first()"]),
    ),
    _kind("sort in partitions", "{0}.sortWithinPartitions('id')"),
    _kind("cache", "{0}.cache()", stable=True, narrow=True),
    _kind("persist on disk", "{0}.persist(StorageLevel.DISK_ONLY)", stable=True, narrow=True),
    _kind("local checkpoint", "{0}.localCheckpoint()", stable=True, narrow=True),
    _kind("checkpoint", "{0}.checkpoint()", stable=True, narrow=True),
    _kind(
        "view",
        "(view := {0}).createOrReplaceTempView('seen') or spark.sql('SELECT * FROM seen')",
        stable=True,
        narrow=True,
    ),
]
# What of its rows there is depends on how they are shared out: plain Spark only repeats itself.
LOOSE = [
    _kind("limit", "{0}.limit({n})", _most(20), promise=Promise.COUNT, n=_N),
    _kind("limit of sorted", "{0}.orderBy(" + _FOUR + ").limit({n})", _most(20), promise=Promise.ORDER, n=_N),
    _kind("offset of sorted", "{0}.orderBy(" + _FOUR + ").offset({n})", promise=Promise.ORDER, n=_N),
    _kind("offset", "{0}.offset({n})", promise=Promise.COUNT, n=_N),
    _kind(
        "sample",
        "{0}.sample({share}, {seed})",
        promise=Promise.NOTHING,
        share=st.sampled_from([0.5, 0.1]),
        seed=_SEED,
    ),
    _kind(
        "sample with replacement",
        "{0}.sample(True, 0.7, {seed})",
        lambda one, seed: Size(one.rows * 4, one.alike * 4),
        promise=Promise.NOTHING,
        seed=_SEED,
    ),
    _kind(
        "sample by key", "{0}.sampleBy('k', {{1: 0.5, 2: 0.2}}, {seed})", promise=Promise.NOTHING, seed=_SEED
    ),
    _kind(
        "random column",
        "{0}.withColumn('v', (F.rand({seed}) * 1000).cast('long'))",
        promise=Promise.COUNT,
        seed=_SEED,
    ),
    _kind("random filter", "{0}.where(F.rand({seed}) < 0.5)", promise=Promise.NOTHING, seed=_SEED),
    _kind("ids", "{0}.withColumn('v', F.monotonically_increasing_id())", promise=Promise.COUNT),
    _kind("partition ids", "{0}.withColumn('v', F.spark_partition_id().cast('long'))", promise=Promise.COUNT),
    _kind(
        "numbered rows",
        "{0}.rdd.zipWithIndex().map(lambda r: (r[1], r[0].k, r[0].v, r[0].s)).toDF(SCHEMA)",
        promise=Promise.COUNT,
    ),
    _kind("a part of a split", "{0}.randomSplit([0.7, 0.3], {seed})[0]", promise=Promise.NOTHING, seed=_SEED),
]
FAILING = [
    _kind("divide by zero", "{0}.withColumn('v', F.expr('v div (k - 3)'))", fails=True),
    _kind("bad cast", "{0}.withColumn('v', F.col('s').cast('long'))", fails=True),
    _kind("raise", "{0}.where(F.expr(\"if(id = 7, raise_error('seven'), true)\"))", fails=True),
    _kind("Python error", "{0}.withColumn('v', F.udf(lambda v: 1 // (v - 500), 'long')('v'))", fails=True),
    _kind("no such column", "{0}.select('id', 'k', 'nothing', 's')", fails=True),
]
