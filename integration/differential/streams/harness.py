"""Run a streaming query step by step; the script of a failing program includes this file's text."""

import contextlib
import json
import os
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.differential.harness import COUNTS, digest, said

#: Rows of one file: (key, event time in s). In addition, each row of a run has a unique number.
Rows = list[tuple[int, int]]
#: Timeouts (s): until an order is on its way (else it waits for a micro-batch), and until it is done.
BEGIN_S, END_S = 2.0, 60.0
#: What a run knows of its past.
KEPT = ("rows", "files", "last", "emitted", "written")


class HandedOver(Exception):
    """Ends the part of a program that is not the last one."""


class Run:
    """A query over inputs that get files step by step: each micro-batch reads one file of each input.

    Moves, failures and savepoints happen only with the plugin; the same steps without it are the oracle. A
    program that hands over has two parts, which different applications may run: its `part` "first" ends
    there, and "rest" begins there in the same folder. In "all" the query is only restarted.
    """

    def __init__(
        self,
        spark: SparkSession,
        out: str,
        made: Callable[..., DataFrame],
        inputs: int,
        mode: str,
        trigger: str,
        into: str = "foreachBatch",
        part: str = "all",
    ) -> None:
        self.part, self.steps = part, list[dict[str, Any]]()
        self.handed = f"{out}/handed.json"
        self.into, self.out = into, f"{out}/rows"
        self.spark, self.made, self.mode = spark, made, mode
        self.ends = trigger == "availableNow"
        self.trigger = {trigger: True if self.ends else "0 seconds"}
        self.checkpoint = f"{out}/checkpoint"
        self.inboxes = [f"{out}/input-{number}" for number in range(inputs)]
        for inbox in self.inboxes:
            os.makedirs(inbox, exist_ok=True)
        self.elastic = "spark.plugins" in dict(spark.sparkContext.getConf().getAll())
        self.rows = self.files = 0
        self.last = -1
        self.seen: dict[int, list[str]] = {}
        self.emitted: list[list[str]] = []
        self.within: list[Callable[[], None]] = []
        self.fails = False
        self.written: Counter[str] = Counter()
        self.query: Any = None
        if part == "rest":
            self.steps = self.taken_over()
        elif not self.ends:
            self.start()

    def start(self) -> None:
        """Start the query, from its checkpoint if there is one."""
        reader = self.spark.readStream.schema("k LONG, s LONG, v LONG").option("maxFilesPerTrigger", 1)
        writer = self.frame([reader.json(inbox) for inbox in self.inboxes]).writeStream
        writer = writer.outputMode(self.mode).option("checkpointLocation", self.checkpoint)
        writer = writer.trigger(**self.trigger)  # type: ignore[arg-type]
        if self.into == "files":
            self.query = writer.format("json").option("path", self.out).start()
        else:
            self.query = writer.foreachBatch(self.sink).start()

    def frame(self, inputs: list[DataFrame]) -> DataFrame:
        """Return the frame built from the inputs."""
        return self.made(*(one.select("k", F.timestamp_seconds("s").alias("t"), "v") for one in inputs))

    def sink(self, frame: DataFrame, batch: int) -> None:
        """Keep the rows that a micro-batch emits."""
        while self.within:
            self.within.pop()()
        rows = sorted(repr(tuple(row)) for row in frame.collect())
        if self.fails:
            self.fails = False
            COUNTS["failures"] += 1
            raise RuntimeError("the sink is ill")
        self.seen[batch] = rows

    def step(self, *waves: list[Rows]) -> dict[str, Any]:
        """Add files to the inputs, all at once, and return the result; a wave has one file for each input.

        A micro-batch that had or emitted rows is [whether it had rows, the watermark, the number of emitted
        rows, their hash].
        """
        if self.part == "rest":
            return self.steps.pop(0)
        found = self.stepped(*waves)
        self.steps.append(found)
        return found

    def stepped(self, *waves: list[Rows]) -> dict[str, Any]:
        with self.between_batches():
            for wave in waves:
                for inbox, rows in zip(self.inboxes, wave, strict=True):
                    if rows:
                        self.put(inbox, rows)
        if self.ends:
            self.start()
            self.query.awaitTermination()
        else:
            self.query.processAllAvailable()
        progress = {p["batchId"]: p for p in self.query.recentProgress if p["batchId"] > self.last}
        had = {b for b, p in progress.items() if p["numInputRows"] > 0}
        shown = sorted(had | {batch for batch, rows in self.seen.items() if rows})
        found = [
            [
                batch in had,
                progress[batch]["eventTime"].get("watermark") if batch in progress else None,
                len(self.seen.get(batch, [])),
                digest(self.seen.get(batch, [])),
            ]
            for batch in shown
        ]
        self.emitted += [self.seen[batch] for batch in shown if batch in self.seen]
        self.last = max([self.last, *shown])
        texts = [row for batch in self.seen.values() for row in batch]
        if self.into == "files":
            texts = self.in_files()
            self.emitted.append(texts)
        self.seen = {}
        return {"count": len(texts), "rows": digest(sorted(texts)), "batches": found, "some": texts[:6]}

    def in_files(self) -> list[str]:
        """Return the rows that Spark's file sink has written, and those it lost, since the last call."""
        if not os.path.isdir(f"{self.out}/_spark_metadata"):
            return []
        frame = self.spark.read.schema("k LONG, t TIMESTAMP, v LONG").json(self.out)
        now = Counter(repr(tuple(row)) for row in frame.collect())
        new, lost = now - self.written, self.written - now
        self.written = now
        return [*sorted(new.elements()), *(f"lost: {row}" for row in lost.elements())]

    @contextlib.contextmanager
    def between_batches(self) -> Iterator[None]:
        """Keep Spark from listing the inputs, so that it sees files added meanwhile at the same time.

        A trigger looks at one input after the other: chance would decide what a micro-batch reads, and
        batches could not be compared.
        """
        if self.query is None or self.ends:
            yield
            return
        lock = self.query._jsq.streamingQuery().awaitProgressLock()
        lock.lock()
        try:
            yield
        finally:
            lock.unlock()

    def put(self, inbox: str, rows: Rows) -> None:
        """Add a file that sorts after all existing ones."""
        numbered = enumerate(rows, self.rows)
        text = "".join(json.dumps({"k": k, "s": s, "v": v}) + "\n" for v, (k, s) in numbered)
        self.rows += len(rows)
        self.files += 1
        hidden, path = (f"{inbox}/{dot}{self.files:04d}.json" for dot in (".", ""))
        with open(hidden, "w", encoding="utf-8") as file:
            file.write(text)
        os.utime(hidden, (1_700_000_000 + self.files,) * 2)
        os.rename(hidden, path)

    def end(self) -> dict[str, Any]:
        """Compare all emitted rows with the result of a batch job on the same files."""
        self.query.stop()
        reader = self.spark.read.schema("k LONG, s LONG, v LONG")
        batch = said(self.frame([reader.json(inbox) for inbox in self.inboxes]).collect())
        emitted = self.emitted[-1:] if self.mode == "complete" else self.emitted
        rows = sorted(row for rows in emitted for row in rows)
        return {**batch, "emitted": len(rows), "unequal": digest(rows) != batch["rows"]}

    def restart(self) -> None:
        """Stop the query and start it from its checkpoint."""
        if not self.ends and self.part != "rest":
            self.query.stop()
            self.start()

    def hand_over(self) -> None:
        """End this part of the program, or begin the rest where the other application has ended."""
        if self.part == "all":
            self.restart()
        elif self.part == "first":
            self.query.stop()
            kept = {name: getattr(self, name) for name in KEPT}
            with open(self.handed, "w", encoding="utf-8") as file:
                json.dump({**kept, "steps": self.steps}, file)
            raise HandedOver
        else:
            COUNTS["begun by plain Spark"] += 1
            self.part = "all"
            if not self.ends:
                self.start()

    def taken_over(self) -> list[dict[str, Any]]:
        """Take over what the other application knows of its part; return the results of its steps."""
        with open(self.handed, encoding="utf-8") as file:
            kept = json.load(file)
        for name in KEPT:
            setattr(self, name, kept[name])
        self.written = Counter(self.written)
        steps: list[dict[str, Any]] = kept["steps"]
        return steps

    def savepoint(self) -> None:
        """Take a savepoint, stop the query and start it from the savepoint."""
        if self.is_ours():
            self.asked("PUT", "/savepoints", {})
            taken = self.until(lambda: self.asked("GET", "/savepoints")["savepoints"], END_S)
            if taken:
                COUNTS["savepoints"] += 1
                self.checkpoint = taken[0]["path"]
        self.restart()

    def fail(self) -> None:
        """Let the sink fail once, in the next micro-batch, which is then retried."""
        self.fails = self.is_ours() and self.into == "foreachBatch"

    def move(self, partitions: int) -> None:
        """Move the state of the query, which is idle, to this number of partitions."""
        if self.is_ours():
            self.bound(partitions)
            moved = self.until(
                lambda: self.shows(partitions, "preparing", "target", "partitions"), BEGIN_S
            ) and self.until(lambda: self.shows(partitions, "partitions"), END_S)
            COUNTS["moves" if moved else "moves that came later"] += 1

    def move_within(self, partitions: int) -> None:
        """Order a move during the next micro-batch, to be carried out after it; with a file sink, at once."""

        def order() -> None:
            self.bound(partitions)
            if self.until(lambda: self.shows(partitions, "preparing", "target", "partitions"), BEGIN_S):
                COUNTS["moves ordered in a micro-batch"] += 1

        if self.is_ours() and self.into == "files":
            self.bound(partitions)
        elif self.is_ours():
            self.within.append(order)

    def lose(self) -> None:
        """Kill one of the executors if they are processes; the cluster starts another one."""
        if not self.is_ours():
            return
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if "--app-id" in words and self.spark.sparkContext.applicationId in words:
                process.kill()
                COUNTS["executors lost"] += 1
                return

    def lose_within(self) -> None:
        """Kill an executor during the next micro-batch; with a file sink, at once."""
        if self.into == "files":
            self.lose()
        elif self.is_ours():
            self.within.append(self.lose)

    def is_ours(self) -> bool:
        """Return whether the plugin is present and the query is active."""
        return bool(self.elastic and self.query and self.query.isActive)

    def bound(self, partitions: int) -> None:
        bounds = {"lowerBound": partitions, "upperBound": partitions}
        self.asked("PUT", "/resource-requirements", {"shuffle": {"parallelism": bounds}})

    def asked(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer of the plugin's REST API about the query."""
        url = f"{self.spark.sparkContext.uiWebUrl}/elastic/api/v1/queries/{self.query.id}{path}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def shows(self, partitions: int, *members: str) -> bool:
        """Return whether one of these fields of the query in the API is about a number of partitions."""
        shown = self.asked("GET", "")
        shown["preparing"] = (shown["preparing"] or {}).get("partitions")
        return any(shown[member] == partitions for member in members)

    def until(self, look: Callable[[], Any], seconds: float) -> Any:
        """Return the first true value of `look`, or its last one after this time."""
        end = time.monotonic() + seconds
        while not (found := look()) and time.monotonic() < end:
            time.sleep(0.02)
        return found
