"""The input of the queries, and the output that they must have written."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from spark_elastic_lab.demo.source import Steady
from spark_elastic_tools.tail import GrowingFile

ROWS_PER_FILE = 60
# Spark treats rows of second 0 as late.
FIRST_SECOND = 1000
KEYS = 50
STATEFUL = ("totals", "firsts", "pairs", "memories")
#: The query that writes into Spark's own file sink; the others use foreachBatch.
INTO_FILES = "copies"
QUERIES = (INTO_FILES, *STATEFUL)


class Feeder(Steady):
    """Puts complete files into a folder at a steady rate.

    File f has the values from f × `ROWS_PER_FILE`, all of one second, so the results of the queries are
    known.
    """

    def __init__(self, folder: Path, interval_s: float = 1.0) -> None:
        super().__init__(interval_s=interval_s)
        folder.mkdir(parents=True)
        self._folder = folder
        self.files = 0

    def deliver(self) -> None:
        """Add the next file."""
        first = self.files * ROWS_PER_FILE
        rows = (
            {"key": value % KEYS, "value": value, "second": FIRST_SECOND + self.files}
            for value in range(first, first + ROWS_PER_FILE)
        )
        hidden = self._folder / f".{self.files}.new"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.replace(hidden, self._folder / f"{self.files:06d}.json")
        self.files += 1


@frozen
class Written:
    """One batch as a query wrote it, at `at` (epoch ms)."""

    batch: int
    at: int
    rows: list[list[int]]


def written(output: Path, query: str) -> Iterator[Written]:
    """Read what a query's foreachBatch has written so far, in the order of writing."""
    file = output / f"{query}.jsonl"
    if not file.exists():
        return
    with file.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                yield Written(**json.loads(line))


def batches_in(sink: Path) -> dict[int, Path]:
    """Return the files of a file sink's log by batch number; a compact file covers all batches before it."""
    found: dict[int, Path] = {}
    with suppress(FileNotFoundError):
        for file in (sink / "_spark_metadata").iterdir():
            number, _, rest = file.name.partition(".")
            if number.isdigit() and (rest == "compact" or (not rest and int(number) not in found)):
                found[int(number)] = file
    return found


def values_in(sink: Path) -> Counter[tuple[int, ...]]:
    """Read the rows of the files in a file sink's log: other files count as not written."""
    log = batches_in(sink)
    first = max((number for number, file in log.items() if file.suffix), default=0)
    logs = (file.read_text() for number, file in sorted(log.items()) if number >= first)
    lines = (line for text in logs for line in text.splitlines())
    names = [Path(json.loads(line)["path"]).name for line in lines if line.startswith("{")]
    rows = (line for name in names for line in (sink / name).read_text().splitlines())
    return Counter((json.loads(row)["value"],) for row in rows)


class Tail:
    """Counts the batches that each query has written, without reading everything again."""

    def __init__(self, output: Path, sink: Path, stateful: Iterable[str] = STATEFUL) -> None:
        self._sink = sink
        self._files = {name: GrowingFile(output / f"{name}.jsonl") for name in stateful}
        self._batches = Counter[str]()

    def counts(self) -> Mapping[str, int]:
        """Return the number of batches by query; repeated batches count again."""
        for name, file in self._files.items():
            self._batches[name] += len(file.new_lines())
        return {INTO_FILES: max(batches_in(self._sink), default=-1) + 1, **self._batches}


def differences(output: Path, sink: Path, incoming: Path, query: str) -> tuple[int, list[str]]:
    """Compare a query's output with a batch query over all files; return the rows and the differences."""
    last = {batch.batch: batch.rows for batch in written(output, query)}
    if query == INTO_FILES:
        found = values_in(sink)
    elif query in ("totals", "memories"):
        # A later batch has the newer totals of its keys.
        newest = {row[0]: row[1:] for _, rows in sorted(last.items()) for row in rows}
        found = Counter((key, *rest) for key, rest in newest.items())
    else:
        found = Counter(tuple(row) for rows in last.values() for row in rows)
    wanted = _expected(incoming, query)
    missing, surplus = wanted - found, found - wanted
    said = []
    if missing:
        said.append(f"{query}: {missing.total()} rows missing, such as {sorted(missing)[:5]}")
    if surplus:
        said.append(f"{query}: {surplus.total()} rows too many or wrong, such as {sorted(surplus)[:5]}")
    return wanted.total(), said


def _expected(incoming: Path, query: str) -> Counter[tuple[int, ...]]:
    rows = [
        json.loads(line) for file in sorted(incoming.glob("*.json")) for line in file.read_text().splitlines()
    ]
    values = [row["value"] for row in rows]
    if query == INTO_FILES:
        return Counter((value,) for value in values)
    if query == "firsts":
        return Counter({(value // 7,) for value in values})
    if query == "pairs":
        later = set(values)
        return Counter((value + 120,) for value in values if value % 3 == 0 and value + 120 in later)
    sums: dict[int, tuple[int, int]] = {}
    for row in rows:
        n, total = sums.get(row["key"], (0, 0))
        sums[row["key"]] = (n + 1, total + row["value"])
    return Counter((key, n, total) for key, (n, total) in sums.items())


def now() -> int:
    """Return the time in epoch ms."""
    return time.time_ns() // 1_000_000
