"""Operators that combine rows: aggregates, windows, subqueries, joins and sets."""

from __future__ import annotations

from hypothesis import strategies as st

from integration.differential.operators import FOUR, KEY, N, joined, kind, union
from integration.differential.program import Promise, Size

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
    kind("distinct", "{0}.distinct()"),
    kind(
        "aggregate",
        "{0}.groupBy('{key}').agg(F.expr('{what}').alias('n'))"
        ".selectExpr('xxhash64({key}) % 1000 AS id', 'n AS k', 'n AS v', 'cast({key} AS STRING) AS s')",
        lambda one, **_: Size(one.rows, one.rows // 500 + 2),
        key=KEY,
        what=_AGGREGATED,
    ),
    kind(
        "aggregate of all",
        "{0}.agg(F.expr('{what}').alias('id')).select('id', F.col('id').alias('k'), "
        "F.col('id').alias('v'), F.lit('s').alias('s'))",
        lambda one, **_: Size(1),
        what=_AGGREGATED,
    ),
    kind(
        "rollup",
        "{0}.rollup('k', 's').agg(F.sum('v').alias('v')).select(F.col('v').alias('id'), 'k', 'v', 's')",
        lambda one: Size(one.rows * 3, 200),
    ),
    kind(
        "cube",
        "{0}.cube('k', 's').agg(F.count('*').alias('v')).select(F.col('v').alias('id'), 'k', 'v', 's')",
        lambda one: Size(one.rows * 4, 200),
    ),
    kind(
        "pivot",
        "{0}.groupBy('s').pivot('k', [1, 2]).agg(F.sum('v')).select(F.col('1').alias('id'), "
        "F.col('2').alias('k'), F.lit(0).cast('long').alias('v'), 's')",
        lambda one: Size(one.rows, 20),
    ),
    kind(
        "first of a key",
        "{0}.groupBy('k').agg(F.first('id').alias('id')).select('id', 'k', "
        "F.col('id').alias('v'), F.lit('s').alias('s'))",
        promise=Promise.COUNT,
    ),
    kind("duplicates dropped", "{0}.dropDuplicates(['k'])", promise=Promise.COUNT),
    kind(
        "window rank", "{0}.withColumn('v', F.rank().over(Window.partitionBy('k').orderBy('v')).cast('long'))"
    ),
    kind(
        "window sum",
        "{0}.withColumn('v', F.sum('v').over(Window.partitionBy('{key}').orderBy('id', 'v', 's', 'k')))",
        key=KEY,
    ),
    kind("window of all", "{0}.withColumn('v', F.lag('v').over(Window.orderBy('id', 'v', 'k', 's')))"),
    kind(
        "top of each key",
        "{0}.withColumn('n', F.rank().over(Window.partitionBy('k').orderBy('id', 'v', "
        "'s'))).where('n <= {n}').select(" + FOUR + ")",
        n=N,
    ),
    kind(
        "scalar subquery",
        "spark.sql('SELECT id, k, v - (SELECT min(v) FROM {{a}}) AS v, s FROM {{a}}', a={0})",
    ),
    kind(
        "in subquery",
        "spark.sql('SELECT * FROM {{a}} WHERE {no} id IN (SELECT id FROM {{b}} WHERE v % 2 = "
        "0)', a={0}, b={1})",
        lambda one, other, no: one,
        1,
        no=st.sampled_from(["", "NOT"]),
    ),
    kind(
        "exists",
        "spark.sql('SELECT * FROM {{a}} a WHERE EXISTS (SELECT 1 FROM {{b}} b WHERE a.id = b.id "
        "AND b.v > 3)', a={0}, b={1})",
        lambda one, other: one,
        1,
    ),
    kind(
        "correlated subquery",
        "spark.sql('SELECT id, k, (SELECT max(v) FROM {{b}} b WHERE b.k = a.k) AS v, s FROM "
        "{{a}} a', a={0}, b={1})",
        lambda one, other: one,
        1,
    ),
    kind(
        "common table",
        "spark.sql('WITH t AS (SELECT k, sum(v) AS v FROM {{a}} GROUP BY k) SELECT x.v AS id, "
        "x.k, y.v, CAST(x.k AS STRING) AS s FROM t x JOIN t y ON x.k = y.k', a={0})",
        lambda one: Size(one.rows, 50),
    ),
    kind(
        "grouping sets",
        "spark.sql('SELECT sum(v) AS id, k, count(*) AS v, s FROM {{a}} "
        "GROUP BY GROUPING SETS ((k, s), (k), ())', a={0})",
        lambda one: Size(one.rows * 3, 200),
    ),
    kind(
        "window of a range",
        "{0}.withColumn('v', F.count('*').over(Window.partitionBy('k').orderBy('v').rangeBetween(-50, 50)))",
    ),
    kind(
        "lists",
        "{0}.groupBy('k').agg(F.sort_array(F.collect_list('id')).alias('l'))"
        ".selectExpr('cast(size(l) AS LONG) AS id', 'k', 'xxhash64(l) % 1000 AS v', '\"s\" AS s')",
        lambda one: Size(one.rows, 50),
    ),
]
_HOW = st.sampled_from(["inner", "left", "right", "full"])
_HINT = st.sampled_from(
    ["", ".hint('broadcast')", ".hint('merge')", ".hint('shuffle_hash')", ".hint('shuffle_replicate_nl')"]
)
_MERGED = (
    ".selectExpr('coalesce(l.id, r.id) AS id', 'coalesce(l.k, r.k) AS k', "
    "'coalesce(l.v, 0) + coalesce(r.v, 0) AS v', 'concat_ws(\"-\", l.s, r.s) AS s')"
)
JOINS = [
    kind(
        "join",
        "{0}.alias('l').join({1}.alias('r'){hint}, F.expr('l.id = r.id'), '{how}')" + _MERGED,
        joined,
        1,
        how=_HOW,
        hint=_HINT,
    ),
    kind(
        "join of a key",
        "{0}.alias('l').join({1}.groupBy('k').agg(F.max('id').alias('id'), "
        "F.sum('v').alias('v'), F.min('s').alias('s')).alias('r'){hint}, F.expr('l.k = r.k'), "
        "'{how}')" + _MERGED,
        lambda one, other, **_: Size(one.rows + other.rows, one.alike + other.alike),
        1,
        how=_HOW,
        hint=_HINT,
    ),
    kind(
        "semi join",
        "{0}.join({1}{hint}, 'id', '{how}').select(" + FOUR + ")",
        lambda one, other, **_: one,
        1,
        how=st.sampled_from(["left_semi", "left_anti"]),
        hint=_HINT,
    ),
    kind(
        "join with itself",
        "{0}.alias('l').join({0}.alias('r'), F.expr('l.id = r.id'), '{how}')" + _MERGED,
        lambda one, **_: joined(one, one),
        how=_HOW,
    ),
    kind(
        "join of a range",
        "{0}.alias('l').join({1}.where('id < 20').alias('r'), F.expr('l.id BETWEEN r.id AND r.id "
        "+ 2'), '{how}')" + _MERGED,
        lambda one, other, **_: Size(one.rows * (4 * other.alike) + other.rows, one.alike * 4 * other.alike),
        1,
        how=_HOW,
    ),
    kind(
        "cross join",
        "{0}.crossJoin({1}.agg(F.count('*').alias('n'))).select('id', 'k', F.col('n').alias('v'), 's')",
        lambda one, other: one,
        1,
    ),
    kind("union", "{0}.union({1})", union, 1),
    kind("union with itself", "{0}.unionByName({0})", lambda one: Size(2 * one.rows, 2 * one.alike)),
    kind("intersect", "{0}.intersect({1})", lambda one, other: one, 1),
    kind("intersect all", "{0}.intersectAll({1})", lambda one, other: one, 1),
    kind("except", "{0}.subtract({1})", lambda one, other: one, 1),
    kind("except all", "{0}.exceptAll({1})", lambda one, other: one, 1),
]
