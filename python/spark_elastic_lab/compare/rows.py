"""Compare what two runs wrote, as an application of Spark: usage: spark-submit rows.py REQUEST RESULT.

REQUEST is a JSON file with the paths `plain` and `elastic`, the reader's `options`, and `since` (epoch ms),
before which nothing in a local folder was written. RESULT gets the answer. This file imports nothing of the
package, since it runs on the Python that Spark chooses.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
)

FORMATS = ("parquet", "orc", "json", "csv")
DIGITS = {"double": 10, "float": 5}
"""The significant digits in which numbers must agree, if not all digits do."""
_FORMAT = re.compile(rf"\.({'|'.join(FORMATS)})(\.|$)")
_TABLES = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata": "Iceberg"}


class Unreadable(Exception):
    """An output cannot be compared; the message says what was found and what is allowed."""


def compare(
    spark: SparkSession, plain: str, elastic: str, options: Mapping[str, str], since: int
) -> dict[str, Any]:
    """Return the rows and formats of two outputs, and the number of rows that only one has.

    `exact` counts rows with any difference. The counts beside it take numbers as equal that agree in DIGITS,
    since sums of floating-point numbers depend on the order of the rows. Raises Unreadable.
    """
    kinds = {side: _kind(spark, side, place, since) for side, place in _sides(plain, elastic)}
    if kinds["plain"] != kinds["elastic"]:
        raise Unreadable(f"plain wrote {kinds['plain']}, elastic {kinds['elastic']}")
    kind = kinds["plain"]
    settings = {**({"inferSchema": "true"} if kind == "csv" else {}), **options}
    first, second = (
        spark.read.format(kind).options(**settings).load(place) for _, place in _sides(plain, elastic)
    )
    schemas = [
        [[field.name, field.dataType.simpleString()] for field in one.schema] for one in (first, second)
    ]
    result: dict[str, Any] = {
        "format": kind,
        "rows": {"plain": first.count(), "elastic": second.count()},
        "sameSchema": schemas[0] == schemas[1],
        "schema": {"plain": schemas[0], "elastic": schemas[1]},
        "digits": None,
    }
    if schemas[0] != schemas[1]:
        return {**result, "onlyInPlain": None, "onlyInElastic": None, "exact": None}
    only = exact = _only(first, second, rounded=False)
    if any(exact) and _has_floats(first.schema):
        result["digits"] = DIGITS
        only = _only(first, second, rounded=True)
    return {
        **result,
        "onlyInPlain": only[0],
        "onlyInElastic": only[1],
        "exact": {"onlyInPlain": exact[0], "onlyInElastic": exact[1]},
    }


def _sides(plain: str, elastic: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("plain", plain), ("elastic", elastic)


def _kind(spark: SparkSession, side: str, place: str, since: int) -> str:
    """Return the format of the files at a path. Raises Unreadable."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(place)
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    if not system.exists(path):
        raise Unreadable(f"{side} wrote nothing to {place}: check --output")
    root = system.getFileStatus(path).getPath().toString()
    found, newest = set(), 0
    files = system.listFiles(path, True)
    while files.hasNext():
        status = files.next()
        parts = status.getPath().toString().removeprefix(root).strip("/").split("/")
        table = _TABLES.get(parts[0])
        if len(parts) > 1 and table is not None:
            raise Unreadable(f"{place} is a table of {table}, whose folder also has rows of earlier versions")
        if any(part.startswith(("_", ".")) for part in parts):
            continue
        match = _FORMAT.search(status.getPath().getName())
        found.add(match[1] if match is not None else status.getPath().getName())
        newest = max(newest, status.getModificationTime())
    if len(found) != 1 or not found <= set(FORMATS):
        what = ", ".join(sorted(found)[:3]) or "no file"
        raise Unreadable(f"{place} has {what}, but only files of one of {', '.join(FORMATS)} are compared")
    if system.getScheme() == "file" and newest < since:
        raise Unreadable(f"{place} is older than these runs: does the command write to it?")
    return found.pop()


def _only(plain: DataFrame, elastic: DataFrame, *, rounded: bool) -> tuple[int, int]:
    """Return how many rows only the one and only the other has; equal rows cancel out one by one."""
    names = [f"c{number}" for number in range(len(plain.columns))]
    both = _comparable(plain, names, 1, rounded).unionAll(_comparable(elastic, names, -1, rounded))
    more = both.groupBy(*names).agg(F.sum("side").alias("more"))
    counts = more.agg(
        F.sum(F.greatest(F.col("more"), F.lit(0))), F.sum(F.greatest(-F.col("more"), F.lit(0)))
    ).head()
    assert counts is not None
    return int(counts[0] or 0), int(counts[1] or 0)


def _comparable(rows: DataFrame, names: list[str], side: int, rounded: bool) -> DataFrame:
    types = [field.dataType for field in rows.schema]
    columns = [
        _value(F.col(name), kind, rounded).alias(name) for name, kind in zip(names, types, strict=True)
    ]
    return rows.toDF(*names).select(*columns, F.lit(side).alias("side"))


def _value(value: Column, kind: DataType, rounded: bool) -> Column:
    """Return a value that can be grouped by: maps become sorted entries, and numbers may be rounded."""
    if isinstance(kind, DoubleType | FloatType):
        digits = DIGITS[kind.typeName()] - 1
        return F.when(value.isNotNull(), F.format_string(f"%.{digits}e", value)) if rounded else value
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda one: _value(one, kind.elementType, rounded))
    if isinstance(kind, StructType):
        fields = [_value(value.getField(one.name), one.dataType, rounded).alias(one.name) for one in kind]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, MapType):
        entries = StructType().add("key", kind.keyType).add("value", kind.valueType)
        return F.array_sort(_value(F.map_entries(value), ArrayType(entries), rounded))
    if kind.typeName() == "variant":
        return F.to_json(value)
    return value


def _has_floats(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_floats(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _has_floats(kind.elementType)
    if isinstance(kind, MapType):
        return _has_floats(kind.keyType) or _has_floats(kind.valueType)
    return isinstance(kind, DoubleType | FloatType)


def main(request: Path, result: Path) -> None:
    """Compare as the request says, and write the answer."""
    asked = json.loads(request.read_text(encoding="utf-8"))
    spark = SparkSession.builder.appName("spark-elastic compare").getOrCreate()
    try:
        found = compare(spark, asked["plain"], asked["elastic"], asked["options"], asked["since"])
    except Unreadable as error:
        found = {"error": str(error)}
    finally:
        spark.stop()
    result.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
