"""Input files, written without Spark; the script of a failing program includes this file's text."""

import contextlib
import csv
import gzip
import io
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.orc
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id LONG, k LONG, v LONG, s STRING"


def row(i: int, keys: int = 7) -> dict[str, Any]:
    """Return row i: an id, one of a few keys, a number and a word."""
    return {"id": i, "k": i % keys, "v": (i * 7919) % 1000, "s": f"s{i % 13}"}


def encoded(rows: Iterable[int], form: str, keys: int) -> bytes:
    """Return the contents of a file as bytes."""
    records = [row(i, keys) for i in rows]
    if form in ("parquet", "orc"):
        kinds = {"id": pyarrow.int64(), "k": pyarrow.int64(), "v": pyarrow.int64(), "s": pyarrow.string()}
        table = pyarrow.Table.from_pylist(records, schema=pyarrow.schema(kinds.items()))
        sink = io.BytesIO()
        if form == "parquet":
            pyarrow.parquet.write_table(table, sink, row_group_size=1000)
        else:
            pyarrow.orc.write_table(table, sink)
        return sink.getvalue()
    text = io.StringIO()
    if form == "json":
        text.writelines(json.dumps(record) + "\n" for record in records)
    elif form == "xml":
        cells = ("".join(f"<{name}>{value}</{name}>" for name, value in r.items()) for r in records)
        text.write("<rows>\n" + "".join(f"<r>{cell}</r>\n" for cell in cells) + "</rows>\n")
    else:
        csv.writer(text, lineterminator="\n").writerows(record.values() for record in records)
    return text.getvalue().encode()


def files(
    root: str,
    form: str,
    rows: int,
    count: int,
    layout: str = "flat",
    packed: bool = False,
    keys: int = 7,
) -> str:
    """Return a folder with `rows` rows in `count` files; create it if it does not exist yet.

    `layout`: flat; nested (folders in folders); split (folders p=0, p=1, p=2); empty (one additional, empty
    file).
    """
    folder = Path(root) / f"{form}-{rows}-{count}-{layout}-{keys}{'-gz' if packed else ''}"
    if folder.exists():
        return str(folder)
    with tempfile.TemporaryDirectory(dir=root) as made:
        top = Path(made) / "files"
        for number in range(count):
            inside = top
            if layout == "nested":
                inside = top.joinpath(*(f"d{level}" for level in range(number % 4)))
            elif layout == "split":
                inside = top / f"p={number % 3}"
            inside.mkdir(parents=True, exist_ok=True)
            content = encoded(range(number, rows, count), form, keys)
            path = inside / f"part-{number:04d}.{form}"
            if packed:
                Path(f"{path}.gz").write_bytes(gzip.compress(content, 1))
            else:
                path.write_bytes(content)
        if layout == "empty":
            nothing = encoded((), form, keys) if form in ("parquet", "orc") else b""
            (top / f"part-empty.{form}").write_bytes(nothing)
        # The other application may have created it first.
        with contextlib.suppress(OSError):
            os.rename(top, folder)
    return str(folder)


def first_file(folder: str) -> str:
    """Return the path of one file in a folder."""
    return str(min(path for path in Path(folder).rglob("part-*") if path.is_file()))


def read(spark: SparkSession, form: str, *paths: str, **options: Any) -> DataFrame:
    """Return the rows of files in any of the formats."""
    reader = spark.read.options(**options)
    if form == "text":
        cells = reader.text(list(paths)).selectExpr("*", "split(value, ',') AS cell").drop("value")
        named = (
            "cast(cell[0] AS LONG) id",
            "cast(cell[1] AS LONG) k",
            "cast(cell[2] AS LONG) v",
            "cell[3] s",
        )
        found = cells.selectExpr(*named, *(name for name in cells.columns if name != "cell"))
    else:
        more = {"rowTag": "r"} if form == "xml" else {}
        found = reader.options(**more).schema(SCHEMA).format(form).load(list(paths))
    return found
