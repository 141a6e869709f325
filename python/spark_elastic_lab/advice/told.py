"""What an event log tells: executors, micro-batches with their tasks, and stages of batch jobs.

The events come one at a time and are added up at once, so that a log of any length needs little memory: of a
micro-batch its sums are kept, of a stage of a batch job what `on_stage` keeps. All times are epoch ms, all
names that end in ``_ms`` are durations in ms, and sizes are bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from statistics import median
from typing import Any

from attrs import define, field, frozen

from spark_elastic.core.cluster.slots import TaskSize
from spark_elastic_lab.simulator.record import Steps

Json = Mapping[str, Any]

_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
_STREAM = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
#: The property that marks the plugin's own jobs, as in its `CurrentExecution.scala`.
_OURS = "spark.elastic.own"
_LONGEST_TEXT = 200
_PARTITIONS, _SPARKS_OWN = "spark.sql.shuffle.partitions", 200
_PLUGIN = "org.apache.spark.elastic.ElasticPlugin"


@define
class Line:
    """Sums of points from which the line through them follows."""

    count: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float) -> None:
        """Add a point."""
        self.count += 1
        self.x += x
        self.y += y
        self.xx += x * x
        self.xy += x * y

    def join(self, other: Line) -> None:
        """Add the points of another line."""
        self.count += other.count
        self.x += other.x
        self.y += other.y
        self.xx += other.xx
        self.xy += other.xy

    @property
    def spread(self) -> float:
        """The variance of x, by which a slope can be trusted."""
        return self.xx / self.count - (self.x / self.count) ** 2 if self.count else 0.0

    def slope(self) -> float:
        """Return the slope of the line that fits best, at least 0; 0 if all points have the same x."""
        if self.count < 2 or self.spread <= 1e-9 * max(1.0, self.xx / self.count):
            return 0.0
        return max(0.0, (self.xy - self.x * self.y / self.count) / (self.xx - self.x**2 / self.count))


@frozen(kw_only=True)
class StageFacts:
    """A completed stage: its successful `tasks`, which waited for slots and ran from `submitted` on.

    A task has `task_ms` from its launch to its end, of which it ran its code for `run_ms`; these are sums.
    `sizes` are the bytes of shuffles that each task read, in the order of the partitions; it is empty if the
    stage reads no shuffle. `rows` are the rows that tasks read, `empty` counts the tasks that read none.
    `line` has rows and task_ms of each task. `conf` are the settings of its session.
    """

    stage: int
    name: str
    query: str | None
    batch: int | None
    execution: int | None
    submitted: int
    completed: int
    tasks: int
    failed: int
    task_ms: int
    run_ms: int
    longest_ms: int
    median_ms: float
    gc_ms: int
    spilled_bytes: int
    input_bytes: int
    written_bytes: int
    rows: int
    empty: int
    sizes: tuple[int, ...]
    line: Line
    writers: int
    blocks: int
    slots: int
    conf: Mapping[str, str]

    @property
    def wall_ms(self) -> int:
        """The time from its submission to its end."""
        return max(0, self.completed - self.submitted)

    @property
    def reads_shuffle(self) -> bool:
        """Whether it reads what earlier stages have written."""
        return bool(self.sizes)


@define
class Work:
    """The work of the stages of a micro-batch that read sources, or of those after a shuffle."""

    stages: int = 0
    tasks: int = 0
    task_ms: int = 0
    wall_ms: int = 0
    empty: int = 0
    rows: int = 0
    longest_ms: int = 0
    spilled_bytes: int = 0
    line: Line = field(factory=Line)
    writers: int = 0
    blocks: int = 0

    def add(self, stage: StageFacts) -> None:
        """Add a stage."""
        self.stages += 1
        self.tasks += stage.tasks
        self.task_ms += stage.task_ms
        self.wall_ms += stage.wall_ms
        self.empty += stage.empty
        self.rows += stage.rows
        self.longest_ms = max(self.longest_ms, stage.longest_ms)
        self.spilled_bytes += stage.spilled_bytes
        self.line.join(stage.line)
        self.writers += stage.writers
        self.blocks += stage.blocks


@frozen(kw_only=True)
class MicroBatch:
    """A committed micro-batch; `read` and `work` are its stages before and after shuffles.

    `partitions` is that of its state, else of its shuffles, None if it has neither. Tasks write shuffles of
    `written` partitions, which Spark may join before they are read. `behind` is the number of rows that its
    sources had and it did not read, None if unknown. `slots` are those at its end.
    """

    run: str
    batch: int
    started: int
    took_ms: int
    reported: int
    rows: int
    partitions: int | None
    written: int
    state_rows: int
    state_bytes: int
    behind: int | None
    read: Work
    work: Work
    slots: int
    steady: bool


@define
class QueryLog:
    """A streaming query: its micro-batches, and when it began and ended, None if it has not."""

    query: str
    name: str | None
    begins: int
    ends: int | None = None
    stateful: bool = False
    rocksdb: bool = False
    sources: tuple[str, ...] = ()
    sink: str = ""
    conf: Mapping[str, str] = field(factory=dict)
    runs: int = 0
    error: str | None = None
    batches: list[MicroBatch] = field(factory=list)

    @property
    def title(self) -> str:
        """Its name, or its id if it has none."""
        return self.name or self.query

    @property
    def session_partitions(self) -> int:
        """The partitions of a shuffle in its session."""
        return int(self.conf.get(_PARTITIONS, _SPARKS_OWN))


@define
class _Running:
    """A stage that runs: what its tasks that have ended add up to."""

    conf: Mapping[str, str]
    submitted: int
    durations: list[int] = field(factory=list)
    sizes: dict[int, int] = field(factory=dict)
    line: Line = field(factory=Line)
    writers: int = 0
    blocks: int = 0
    failed: int = 0
    run_ms: int = 0
    gc_ms: int = 0
    spilled_bytes: int = 0
    input_bytes: int = 0
    written_bytes: int = 0
    rows: int = 0
    empty: int = 0


@define
class Told:
    """What a log has told so far. Each stage of a batch job is passed to `on_stage`.

    `slots` and `executors` have their numbers by time. `cores` has the executors' cores by their ids.
    `texts` has the descriptions of the SQL executions with a stage of a batch job, by their ids.
    """

    on_stage: Callable[[StageFacts], None]
    application: str = ""
    name: str = ""
    spark: str = ""
    conf: dict[str, str] = field(factory=dict)
    begin: int | None = None
    end: int = 0
    ended: bool = False
    events: int = 0
    executors: Steps = field(factory=Steps)
    slots: Steps = field(factory=Steps)
    cores: dict[str, int] = field(factory=dict)
    changes: list[tuple[int, str, int]] = field(factory=list)
    queries: dict[str, QueryLog] = field(factory=dict)
    busy_ms: int = 0
    lost: int = 0
    texts: dict[int, str] = field(factory=dict)
    _there: dict[str, int] = field(factory=dict)
    _task: TaskSize = field(factory=TaskSize)
    _stages: dict[tuple[int, int], _Running] = field(factory=dict)
    _properties: dict[int, Mapping[str, str]] = field(factory=dict)
    _of_batch: set[int] = field(factory=set)
    _open: dict[tuple[str, int], tuple[Work, Work]] = field(factory=dict)
    _changed: int = 0

    @staticmethod
    def wants(kind: str) -> bool:
        """Return whether events of this class are of use."""
        return kind in _HANDLERS

    @property
    def has_plugin(self) -> bool:
        """Whether spark-elastic was on in this run."""
        return _PLUGIN in self.conf.get("spark.plugins", "")

    @property
    def hours(self) -> float:
        """The time from the start to the last event (h)."""
        return 0.0 if self.begin is None else (self.end - self.begin) / 3_600_000

    def read(self, events: Iterable[Json]) -> None:
        """Read events. Raises KeyError or TypeError for one that lacks what every Spark writes."""
        for event in events:
            handler = _HANDLERS.get(event["Event"])
            if handler is not None:
                self.events += 1
                handler(self, event)

    def _seen(self, at: int) -> None:
        if at > 0:
            self.begin = at if self.begin is None else min(self.begin, at)
            self.end = max(self.end, at)

    def _log(self, event: Json) -> None:
        self.spark = event["Spark Version"]

    def _environment(self, event: Json) -> None:
        found = event.get("Spark Properties", {})
        self.conf = dict(
            found if isinstance(found, dict) else [(str(key), str(value)) for key, value in found]
        )
        self._task = TaskSize.of(self.conf)
        if self.slots.times:  # a local executor is added before the settings are written
            self._count(self.slots.times[-1])

    def _began(self, event: Json) -> None:
        self.application, self.name = event.get("App ID") or "", event["App Name"]
        self._seen(event["Timestamp"])

    def _over(self, event: Json) -> None:
        self.ended = True
        self._seen(event["Timestamp"])

    def _added(self, event: Json) -> None:
        executor, at = event["Executor ID"], event["Timestamp"]
        self._seen(at)
        cores = event["Executor Info"]["Total Cores"]
        self._there[executor] = self.cores[executor] = cores
        self.changes.append((at, executor, cores))
        self._count(at)

    def _removed(self, event: Json) -> None:
        executor, at = event["Executor ID"], event["Timestamp"]
        self._seen(at)
        if self._there.pop(executor, None) is not None:
            self.changes.append((at, executor, 0))
            self.lost += not self.ended
        self._count(at)

    def _count(self, at: int) -> None:
        # Events of executors may be written a little out of order.
        at = max([at, *self.executors.times[-1:]])
        self._changed = at
        self.executors.note(at, len(self._there))
        self.slots.note(at, sum(map(self._task.slots, self._there.values())))

    def _job(self, event: Json) -> None:
        self._seen(event["Submission Time"])
        properties = event.get("Properties") or {}
        for stage in event.get("Stage IDs", ()):
            self._properties[stage] = properties

    def _submitted(self, event: Json) -> None:
        info = event["Stage Info"]
        key = info["Stage ID"], info["Stage Attempt ID"]
        properties = event.get("Properties") or self._properties.get(key[0], {})
        submitted = info.get("Submission Time") or 0
        self._seen(submitted)
        self._stages[key] = _Running(conf=properties, submitted=submitted)

    def _task_ended(self, event: Json) -> None:
        info, metrics = event["Task Info"], event.get("Task Metrics")
        began, ended = info["Launch Time"], info["Finish Time"]
        self._seen(ended)
        took = max(0, ended - began)
        self.busy_ms += took
        stage = self._stages.get((event["Stage ID"], event["Stage Attempt ID"]))
        if stage is None:
            return
        if event["Task End Reason"]["Reason"] != "Success" or metrics is None:
            stage.failed += 1
            return
        read, source = metrics["Shuffle Read Metrics"], metrics["Input Metrics"]
        size = read["Remote Bytes Read"] + read["Local Bytes Read"]
        rows = read["Total Records Read"] + source["Records Read"]
        stage.durations.append(took)
        stage.sizes[info.get("Partition ID", info["Index"])] = size
        stage.line.add(rows, took)
        stage.run_ms += metrics["Executor Run Time"]
        stage.gc_ms += metrics["JVM GC Time"]
        stage.spilled_bytes += metrics["Disk Bytes Spilled"]
        stage.input_bytes += source["Bytes Read"]
        stage.written_bytes += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
        stage.writers += metrics["Shuffle Write Metrics"]["Shuffle Records Written"] > 0
        stage.blocks += read["Remote Blocks Fetched"] + read["Local Blocks Fetched"]
        stage.rows += rows
        stage.empty += rows == 0

    def _completed(self, event: Json) -> None:
        info = event["Stage Info"]
        key = info["Stage ID"], info["Stage Attempt ID"]
        running, completed = self._stages.pop(key, None), info.get("Completion Time") or 0
        self._seen(completed)
        if running is None or not running.durations or info.get("Failure Reason"):
            return
        conf = running.conf
        if _OURS in conf:
            return
        query, batch = conf.get("sql.streaming.queryId"), conf.get("streaming.sql.batchId")
        execution = conf.get("spark.sql.execution.id")
        sizes = running.sizes if info.get("Parent IDs") else {}
        facts = StageFacts(
            stage=key[0],
            name=info["Stage Name"],
            query=query,
            batch=None if batch is None else int(batch),
            execution=None if execution is None else int(execution),
            submitted=info.get("Submission Time") or running.submitted,
            completed=completed,
            tasks=len(running.durations),
            failed=running.failed,
            task_ms=sum(running.durations),
            run_ms=running.run_ms,
            longest_ms=max(running.durations),
            median_ms=median(running.durations),
            gc_ms=running.gc_ms,
            spilled_bytes=running.spilled_bytes,
            input_bytes=running.input_bytes,
            written_bytes=running.written_bytes,
            rows=running.rows,
            empty=running.empty,
            sizes=tuple(size for _, size in sorted(sizes.items())),
            line=running.line,
            writers=running.writers,
            blocks=running.blocks,
            slots=self.slots.at(completed),
            conf=conf,
        )
        if query is None:
            if facts.execution is not None:
                self._of_batch.add(facts.execution)
            self.on_stage(facts)
        elif facts.batch is not None:
            read, work = self._open.setdefault((query, facts.batch), (Work(), Work()))
            (work if facts.reads_shuffle else read).add(facts)
            if query in self.queries:
                self.queries[query].conf = conf

    def _sql(self, event: Json) -> None:
        self._seen(event["time"])
        self.texts[event["executionId"]] = str(event.get("description") or "")[:_LONGEST_TEXT]

    def _sql_over(self, event: Json) -> None:
        self._seen(event["time"])
        if event["executionId"] not in self._of_batch:
            self.texts.pop(event["executionId"], None)

    def _query(self, event: Json) -> None:
        at = moment(event["timestamp"]) if event.get("timestamp") else self.end
        self._seen(at)
        found = self.queries.setdefault(event["id"], QueryLog(event["id"], event.get("name"), at))
        found.runs += 1
        found.ends = None

    def _progress(self, event: Json) -> None:
        progress = event["progress"]
        query = self.queries.get(progress["id"])
        started = moment(progress["timestamp"])
        if query is None:  # the part of a compacted log that named it is gone
            query = self.queries[progress["id"]] = QueryLog(progress["id"], progress.get("name"), started)
        took = int(progress["durationMs"].get("triggerExecution", progress.get("batchDuration") or 0))
        self._seen(started + took)
        operators, sources = progress["stateOperators"], progress["sources"]
        query.sources = tuple(source["description"] for source in sources)
        query.sink = (progress.get("sink") or {}).get("description", "")
        query.stateful = query.stateful or bool(operators)
        query.rocksdb = query.rocksdb or any(
            name.startswith("rocksdb") for one in operators for name in one.get("customMetrics", {})
        )
        rows = sum(source["numInputRows"] for source in sources)
        read, work = self._open.pop((progress["id"], progress["batchId"]), (Work(), Work()))
        if not (rows or read.tasks or work.tasks):
            return  # it reports that there was nothing to read
        behind = [left for left in map(_behind, sources) if left is not None]
        counts = [one["numShufflePartitions"] for one in operators if one.get("numShufflePartitions")]
        query.batches.append(
            MicroBatch(
                run=progress["runId"],
                batch=progress["batchId"],
                started=started,
                took_ms=took,
                reported=started + took,
                rows=rows,
                partitions=max(counts) if counts else work.tasks // work.stages if work.stages else None,
                written=max(counts) if counts else query.session_partitions,
                state_rows=sum(one["numRowsTotal"] for one in operators),
                state_bytes=sum(map(_state_bytes, operators)),
                behind=sum(behind) if behind else None,
                read=read,
                work=work,
                slots=self.slots.at(started + took),
                steady=self._changed <= started,
            )
        )

    def _query_over(self, event: Json) -> None:
        query = self.queries.get(event["id"])
        if query is not None:
            error = event.get("exception")
            query.ends, query.error = self.end, None if error is None else str(error).splitlines()[0]


_HANDLERS: Mapping[str, Callable[[Told, Json], None]] = {
    "SparkListenerLogStart": Told._log,
    "SparkListenerEnvironmentUpdate": Told._environment,
    "SparkListenerApplicationStart": Told._began,
    "SparkListenerApplicationEnd": Told._over,
    "SparkListenerExecutorAdded": Told._added,
    "SparkListenerExecutorRemoved": Told._removed,
    "SparkListenerJobStart": Told._job,
    "SparkListenerStageSubmitted": Told._submitted,
    "SparkListenerTaskEnd": Told._task_ended,
    "SparkListenerStageCompleted": Told._completed,
    f"{_SQL}Start": Told._sql,
    f"{_SQL}End": Told._sql_over,
    f"{_STREAM}StartedEvent": Told._query,
    f"{_STREAM}ProgressEvent": Told._progress,
    f"{_STREAM}TerminatedEvent": Told._query_over,
}


def moment(text: str) -> int:
    """Return the epoch ms of a timestamp such as ``2026-01-05T00:00:00.000Z``."""
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1_000)


def _state_bytes(operator: Json) -> int:
    # RocksDB's reported memory is only its caches; its state is in its files.
    metrics: Json = operator.get("customMetrics") or {}
    return int(metrics.get("rocksdbSstFileSize", operator["memoryUsedBytes"]))


def _behind(source: Json) -> int | None:
    """Return the rows that a source has and did not give, from Kafka's offsets; None for other sources."""
    latest, read = _offsets(source.get("latestOffset")), _offsets(source.get("endOffset"))
    if latest is None or read is None:
        return None
    return sum(max(0, last - read.get(place, last)) for place, last in latest.items())


def _offsets(value: Any) -> dict[tuple[str, str], int] | None:
    """Return the offsets by topic and partition, None if these are not Kafka's."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
        return {
            (topic, partition): int(offset)
            for topic, partitions in found.items()
            for partition, offset in partitions.items()
        }
    except (ValueError, TypeError, AttributeError):
        return None
