"""Write pairs of outputs and compare each: usage: spark-submit pairs.py FOLDER, which gets results.json."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_elastic_lab.compare.rows import Unreadable, compare

_SUM = 0.1 + 0.2
_NESTED = "m map<string,double>, a array<struct<x:double,s:string>>, f float, b binary"


def nested(x: float, *, turned: bool) -> list[tuple[Any, ...]]:
    """A row with each kind of nesting, whose map may be written from its end."""
    entries = {"one": x, "two": float("nan")}
    return [
        (dict(reversed(entries.items())) if turned else entries, [(x, "s"), (None, None)], x, b"x"),
        (None,) * 4,
    ]


class Pairs:
    """Writes and compares pairs below a folder, and keeps the answers by their names."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self.results: dict[str, Any] = {}

    def rows(self, rows: list[tuple[Any, ...]], schema: str) -> DataFrame:
        """Rows as a frame."""
        return self._spark.createDataFrame(rows, schema)

    def write(
        self,
        name: str,
        plain: DataFrame,
        elastic: DataFrame,
        kind: str = "parquet",
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Write two frames, and compare them."""
        for side, frame in (("plain", plain), ("elastic", elastic)):
            frame.write.format(kind).options(**(options or {})).save(self.place(name, side))
        self.compare(name, options)

    def place(self, name: str, side: str) -> str:
        """Where a side of a pair is."""
        return str(self._folder / name / side)

    def compare(self, name: str, options: Mapping[str, str] | None = None, since: int = 0) -> None:
        """Compare what is there."""
        try:
            places = self.place(name, "plain"), self.place(name, "elastic")
            self.results[name] = compare(self._spark, *places, options or {}, since)
        except Unreadable as error:
            self.results[name] = {"error": str(error)}


def main(folder: Path) -> None:
    """Compare all pairs."""
    spark = SparkSession.builder.appName("pairs").getOrCreate()
    pairs = Pairs(spark, folder)
    some = spark.range(50).selectExpr("id", "id % 5 AS `a.b`", "CAST(id AS string) AS s")
    pairs.write("other files", some.repartition(3), some.coalesce(1))
    pairs.write("one twice", some, some.union(some.filter("id = 7")))
    pairs.write("other type", some, some.withColumn("id", some.id.cast("int")))
    pairs.write("no rows", some.filter("id < 0"), some.filter("id < 0"))
    for kind in ("orc", "json"):
        pairs.write(kind, some, some.filter("id <> 7"), kind)
    pairs.write("csv", some.repartition(2), some.coalesce(1), "csv", {"header": "true"})
    for name, x in (("last digits", 0.3), ("other digits", 0.3001)):
        for kind in ("parquet", "csv"):
            pairs.write(
                f"{name} {kind}", pairs.rows([(_SUM,)], "x double"), pairs.rows([(x,)], "x double"), kind
            )
    pairs.write(
        "nested",
        pairs.rows(nested(_SUM, turned=False), _NESTED),
        pairs.rows(nested(0.3, turned=True), _NESTED),
    )
    pairs.write(
        "other nested",
        pairs.rows(nested(0.3, turned=False), _NESTED),
        pairs.rows(nested(0.4, turned=False), _NESTED),
    )
    pairs.write("text", some.select("s"), some.select("s"), "text")
    pairs.compare("nothing")
    pairs.write("table", some, some)
    log = Path(pairs.place("table", "elastic"), "_delta_log")
    log.mkdir()
    (log / "0.json").touch()
    pairs.compare("table")
    pairs.write("old", some, some)
    pairs.compare("old", since=int(time.time() * 1_000) + 3_600_000)
    spark.stop()
    (folder / "results.json").write_text(json.dumps(pairs.results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
