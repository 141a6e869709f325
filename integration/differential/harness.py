"""The functions that a program calls; the script of a failing program includes this file's text."""

import concurrent.futures
import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

RESULTS: dict[str, dict[str, Any]] = {}
#: The things done only with the plugin.
COUNTS: Counter[str] = Counter()


def condition(error: Exception) -> str:
    """Return the kind of an error, however deeply it is wrapped: the innermost condition that Spark names."""
    text = str(error)
    python = re.findall(r"^(\w+(?:Error|Exception)): ", text, re.MULTILINE)
    if type(error).__name__ == "PythonException" and python:
        return f"Python's {python[-1]}"
    memory = re.search(r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|Not enough memory", text)
    if memory:
        return "out of memory"
    named: str | None = error.getCondition() if isinstance(error, PySparkException) else None
    inner = re.findall(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", text)
    thrown = re.findall(r"((?:java|org)\.[\w.]+(?:Exception|Error))", text)
    return str(inner[-1] if inner else named or (thrown or [type(error).__name__])[-1])


def digest(texts: Iterable[str]) -> str:
    """Return a short hash of texts in their order."""
    return hashlib.md5("\n".join(texts).encode()).hexdigest()[:12]


def said(rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """Summarize rows, in their order and in any order."""
    texts = [repr(tuple(row)) for row in rows]
    ordered = sorted(texts)
    return {"count": len(texts), "rows": digest(ordered), "order": digest(texts), "some": ordered[:6]}


def collected(frame: DataFrame) -> dict[str, Any]:
    return said(frame.collect())


def iterated(frame: DataFrame) -> dict[str, Any]:
    return said(frame.toLocalIterator())


def counted(frame: DataFrame) -> dict[str, Any]:
    return {"count": frame.count()}


def summed(frame: DataFrame) -> dict[str, Any]:
    """Summarize rows without collecting them."""
    found = frame.selectExpr("count(*)", "sum(cast(xxhash64(*) AS DECIMAL(38, 0)))").collect()[0]
    return {"count": found[0], "rows": str(found[1])}


def taken(frame: DataFrame, number: int) -> dict[str, Any]:
    return said(frame.take(number))


def as_pandas(frame: DataFrame) -> dict[str, Any]:
    return said(pandas.DataFrame(frame.toPandas()).astype(object).itertuples(index=False, name=None))


def partitions(frame: DataFrame) -> dict[str, Any]:
    return {"partitions": frame.rdd.getNumPartitions(), **said(frame.collect())}


def placed(frame: DataFrame) -> dict[str, Any]:
    """Summarize rows, each with its partition."""
    return partitions(frame.select("*", F.spark_partition_id().alias("partition")))


def split(frame: DataFrame, weights: list[float], seed: int) -> dict[str, Any]:
    """Report whether the parts of a frame have other rows than the frame."""
    # The whole frame comes last: the first part must not benefit from what it would teach.
    parts = [summed(part) for part in frame.randomSplit(weights, seed)]
    whole = summed(frame)
    rows = sum(int(part["rows"]) for part in parts if part["count"])
    together = {
        "count": sum(part["count"] for part in parts),
        "rows": str(rows) if whole["count"] else "None",
    }
    return {**whole, "parts": [part["count"] for part in parts], "unequal": together != whole}


def written(
    frame: DataFrame, spark: SparkSession, form: str, out: str, by: str | None = None
) -> dict[str, Any]:
    """Write a frame and summarize the result."""
    writer = frame.write.format(form).mode("overwrite")
    (writer.partitionBy(by) if by else writer).save(out)
    parts = [name for _, _, names in os.walk(out) for name in names if name.startswith("part-")]
    back = spark.read.schema(frame.schema).format(form).load(out)
    return {**said(back.select(*frame.columns).collect()), "files": len(parts)}


_CHANGES = {
    "append": "INSERT INTO {table} SELECT * FROM {table} WHERE id % 2 = 0",
    "delete": "DELETE FROM {table} WHERE id % 5 = 0",
    "update": "UPDATE {table} SET v = v + 1 WHERE k = 2",
    "merge": (
        "MERGE INTO {table} t USING (SELECT id * 10 AS id FROM range(10)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = -1 "
        "WHEN NOT MATCHED THEN INSERT (id, k, v, s) VALUES (s.id, 1, -2, 's')"
    ),
    "optimize": "OPTIMIZE {table}",
    "cluster": "OPTIMIZE {table} ZORDER BY (v)",
}


def changed(
    spark: SparkSession, out: str, frame: DataFrame, by: str | None, changes: Iterable[str]
) -> DataFrame:
    """Write a frame as a new Delta Lake table, change it, and read it."""
    path = f"{out}/table-{len(os.listdir(out))}"
    writer = frame.write.format("delta")
    (writer.partitionBy(by) if by else writer).save(path)
    for change in changes:
        spark.sql(_CHANGES[change].format(table=f"delta.`{path}`"))
    return spark.read.format("delta").load(path)


def act(name: str, action: Callable[[], dict[str, Any]]) -> None:
    """Run an action and keep its result under a name."""
    began = time.monotonic()
    try:
        found = action()
    except Exception as error:
        found = {"error": condition(error), "text": str(error)[:1500]}
    RESULTS[name] = {**found, "seconds": round(time.monotonic() - began, 3)}


def together(actions: Mapping[str, Callable[[], dict[str, Any]]]) -> None:
    """Run actions at the same time, each in a thread."""
    with concurrent.futures.ThreadPoolExecutor(len(actions)) as threads:
        list(threads.map(act, actions.keys(), actions.values()))
