"""Sources: each returns rows with the same four columns, so that any operator applies to any source."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from integration.differential.program import Kind, Size

_FORM = st.sampled_from(["parquet", "csv", "json", "orc", "text", "xml"])
_ROWS = st.sampled_from([100, 1000, 3000, 0, 1])
_SOME_OR_MANY = st.sampled_from([100, 3000, 100_000])
_FEW = st.sampled_from([2, 1, 3, 8])
_PARTS = st.sampled_from([4, 1, 2, 16])


def _size(rows: int, **_: Any) -> Size:
    return Size(rows)


def _twice(rows: int, **_: Any) -> Size:
    return Size(2 * rows, 2)


def source(name: str, text: str, size: Any = _size, before: str = "", **arguments: Any) -> Kind:
    return Kind(name=name, text=text, size=size, before=before, arguments=arguments)


_PYTHON = """\
class Numbers(DataSource):
    def schema(self):
        return SCHEMA
    def reader(self, schema):
        return NumbersReader(self.options)
class NumbersReader(DataSourceReader):
    def __init__(self, options):
        self.rows, self.parts = int(options['rows']), int(options['parts'])
    def partitions(self):
        return [InputPartition(n) for n in range(self.parts)]
    def read(self, partition):
        for i in range(partition.value, self.rows, self.parts):
            yield i, i % 7, i * 7919 % 1000, 's' + str(i % 13)
spark.dataSource.register(Numbers)
"""
_SHARED = """\
spark.sql(
    "CREATE TABLE shared (id LONG, v LONG, s STRING, k LONG) USING parquet PARTITIONED BY (k) "
    f"LOCATION '{{OUT}}/shared'"
)
place = {files}
spark.sql(f"ALTER TABLE shared ADD PARTITION (k=1) LOCATION '{{place}}' PARTITION (k=2) LOCATION '{{place}}'")
"""
_BUCKETS = """\
(read(spark, 'parquet', {files}).write.bucketBy({buckets}, 'id').sortBy('id').mode('overwrite')
    .saveAsTable('buckets'))
"""
_JDBC = """\
URL = "jdbc:derby:memory:differential;create=true"
read(spark, 'parquet', {files}).coalesce(1).write.mode('overwrite').jdbc(URL, 'numbers')
"""
_PARQUET = "files(DATA, 'parquet', {rows}, {count})"
_NUMBERS = "'id', 'id % 7 AS k', 'id * 7919 % 1000 AS v', 'concat(\"s\", id % 13) AS s'"

#: The source to which the others shrink: it has no arguments.
SIMPLEST = source("some rows", "spark.range(100).selectExpr(" + _NUMBERS + ")", lambda: Size(100))
SOURCES = [
    SIMPLEST,
    source(
        "range",
        "spark.range(0, {rows}, 1, {parts}).selectExpr(" + _NUMBERS + ")",
        rows=_SOME_OR_MANY,
        parts=_PARTS,
    ),
    source("range of rows", "spark.range({rows}).selectExpr(" + _NUMBERS + ")", rows=_ROWS),
    source(
        "files",
        "read(spark, '{form}', files(DATA, '{form}', {rows}, {count}))",
        form=_FORM,
        rows=_SOME_OR_MANY,
        count=_FEW,
    ),
    source(
        "files packed",
        "read(spark, '{form}', files(DATA, '{form}', {rows}, {count}, packed=True))",
        form=st.sampled_from(["csv", "json", "text", "xml"]),
        rows=_ROWS,
        count=_FEW,
    ),
    source(
        "files twice",
        "read(spark, '{form}', *[files(DATA, '{form}', {rows}, {count})] * 2)",
        _twice,
        form=_FORM,
        rows=_ROWS,
        count=_FEW,
    ),
    source(
        "files and one of them",
        "read(spark, '{form}', files(DATA, '{form}', {rows}, {count}), first_file(files(DATA, "
        "'{form}', {rows}, {count})))",
        _twice,
        form=_FORM,
        rows=_ROWS,
        count=_FEW,
    ),
    source(
        "folders in folders",
        "read(spark, '{form}', files(DATA, '{form}', {rows}, {count}, 'nested'), recursiveFileLookup=True)",
        form=_FORM,
        rows=_ROWS,
        count=st.sampled_from([5, 3, 9]),
    ),
    source(
        "folders of a table",
        "read(spark, '{form}', files(DATA, '{form}', {rows}, {count}, "
        "'split')).where('{where}').select('id', 'k', 'v', 's')",
        form=_FORM,
        rows=_ROWS,
        count=st.sampled_from([3, 7]),
        where=st.sampled_from(["true", "p > 0", "p = 2"]),
    ),
    source(
        "files with an empty one",
        "read(spark, '{form}', files(DATA, '{form}', {rows}, {count}, 'empty'))",
        form=st.sampled_from(["csv", "json", "parquet", "orc", "text"]),
        rows=_ROWS,
        count=_FEW,
    ),
    source(
        "many files",
        "read(spark, '{form}', files(DATA, '{form}', {rows}, 200))",
        form=st.sampled_from(["parquet", "csv", "json", "orc", "text"]),
        rows=st.sampled_from([1000, 5000]),
    ),
    source(
        "large files",
        "read(spark, '{form}', files(DATA, '{form}', 100_000, {count}))",
        lambda **_: Size(100_000),
        form=st.sampled_from(["parquet", "csv", "orc"]),
        count=st.sampled_from([1, 3]),
    ),
    source(
        "lines in one value",
        "spark.read.text(files(DATA, 'text', {rows}, {count}), wholetext=True).select("
        "F.length('value').cast('long').alias('id'), F.lit(1).cast('long').alias('k'), "
        "F.expr('xxhash64(value) % 1000').alias('v'), F.lit('s').alias('s'))",
        lambda count, **_: Size(count, count),
        rows=_ROWS,
        count=_FEW,
    ),
    source(
        "binary files",
        "spark.read.format('binaryFile').load(files(DATA, '{form}', {rows}, {count})).select("
        "F.col('length').alias('id'), F.lit(1).cast('long').alias('k'), "
        "F.expr('xxhash64(content) % 1000').alias('v'), "
        "F.substring_index('path', '/', -1).alias('s'))",
        lambda count, **_: Size(count, count),
        form=_FORM,
        rows=_ROWS,
        count=_FEW,
    ),
    source(
        "files with their names",
        "read(spark, '{form}', files(DATA, '{form}', {rows}, {count})).select('id', 'k', "
        "F.col('_metadata.file_size').alias('v'), F.col('_metadata.file_name').alias('s'))",
        form=st.sampled_from(["parquet", "csv", "json", "orc"]),
        rows=_ROWS,
        count=_FEW,
    ),
    source(
        "partitions of one place",
        "spark.table('shared').select('id', 'k', 'v', 's')",
        _twice,
        before=_SHARED.replace("{files}", _PARQUET),
        rows=_ROWS,
        count=_FEW,
    ),
    source(
        "buckets",
        "spark.table('buckets').select('id', 'k', 'v', 's')",
        before=_BUCKETS.replace("{files}", _PARQUET),
        rows=st.sampled_from([100, 1000, 0]),
        count=st.sampled_from([1, 3]),
        buckets=st.sampled_from([3, 1, 8]),
    ),
    source(
        "jdbc",
        "spark.read.jdbc(URL, 'numbers', column='id', lowerBound=0, upperBound={rows}, "
        "numPartitions={parts})",
        before=_JDBC.replace("{files}", _PARQUET),
        rows=st.sampled_from([100, 10]),
        count=st.just(1),
        parts=st.sampled_from([1, 3, 20]),
    ),
    source(
        "Python source",
        "spark.read.format('Numbers').option('rows', {rows}).option('parts', {parts}).load()",
        before=_PYTHON.replace("{", "{{").replace("}", "}}"),
        rows=st.sampled_from([100, 1000, 0]),
        parts=st.sampled_from([2, 1, 8]),
    ),
    source(
        "rows of the driver",
        "spark.createDataFrame([tuple(row(i).values()) for i in range({rows})], SCHEMA)",
        rows=st.sampled_from([10, 0, 1, 300]),
    ),
    source(
        "RDD",
        "spark.sparkContext.parallelize(range({rows}), {parts}).map(lambda i: "
        "tuple(row(i).values())).toDF(SCHEMA)",
        rows=st.sampled_from([100, 0, 2000]),
        parts=st.sampled_from([3, 1, 12]),
    ),
]
