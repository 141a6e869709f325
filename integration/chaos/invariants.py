"""The conditions that must hold after faults, and at the end."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_args

import psutil
from attrs import define, field, frozen

from integration.chaos.journal import Moves, replayed
from integration.chaos.rows import differences, written
from integration.chaos.settings import QUEUES, SECRET
from integration.chaos.world import World
from integration.jdk_tools import JSTACK, tool_output
from integration.streaming.driver import histogram, listening
from integration.streaming.http import Client
from integration.streaming.waiting import eventually
from spark_elastic.runtime.port import QueueName
from spark_elastic_tools.client import API, Failure, Json

#: The problem of missing executors; no bounds are declared then, so the application should use all of them.
MISSING = "executors are missing"
_POLL_S = 0.1
# Some variation is normal: Spark's own threads and files come and go.
MORE_THREADS, MORE_FILES, MORE_PORTS = 40, 80, 4
# A policy process has one connection for its loop and one for each queue of requests.
_CONNECTIONS = {"elastic-gateway-call": 1 + len(get_args(QueueName))}
# A driver that has just started holds less than half of what it holds later: broadcasts, generated code, UI.
MORE_HEAP_MB, MORE_POLICY_MB = 128, 64
_THREAD = re.compile(r'^"(.*?)" ', re.MULTILINE)
# Spark's bounded thread pools; their threads stay for a minute.
_POOLS = (
    "block-manager-",
    "SparkUI-",
    "shuffle-exchange-",
    "QueryStageCreator-",
    "ResultQueryStageExecution-",
)
_DECLARES_STATE = "Starting Streaming TransformWithStateInPandas Python worker."
_CONVERTED = ": Convert the checkpoint to RocksDB"
_ENTRY = re.compile(r"^(?=\d\d:\d\d:\d\d\.\d{3} )", re.MULTILINE)
# An uncaught exception is named in the next line.
_ERROR = re.compile(r"^\S+ ERROR (\w+\$?): (Uncaught exception in thread .*\n.*|.*)", re.MULTILINE)
#: Spark's log entries at level ERROR when executors are lost, or when a batch fails on purpose.
KNOWN_ERRORS = (
    r"TaskSchedulerImpl: Lost executor ",
    r"TaskSetManager: (\[.*\] )?Task \d+ in stage \S+ failed \d+ times",
    r"Inbox: Ignoring error",
    # Broken connections in its network.
    r"(Transport\w+|RetryingBlockTransferor|OneForOneBlockFetcher|ShuffleBlockFetcherIterator): ",
    r"StandaloneSchedulerBackend: ",
    r"Utils: Aborting task",
    r"WriteToDataSourceV2Exec: ",
    r"MicroBatchExecution: ",
    r"BlockManagerMasterEndpoint: Fail to know the executor \S+ is alive",
    r"DataWritingSparkTask: ",
    r"CheckpointFileManager: ",
    r"OperatorStateMetadataUtils: Fail to write state metadata file",
    # An executor is about to end.
    r"ContextCleaner: Error cleaning broadcast \d+",
    r"FileFormatWriter: Aborting job ",
    # A stopped query is interrupted wherever it is.
    r"TorrentBroadcast: Store broadcast \S+ fail, remove all pieces",
    # A Python task ends together with its context: its accumulators are no longer accepted.
    r"DAGScheduler: Failed to update accumulator \d+ \(\S+\.PythonAccumulatorV2\)",
    # A failure outside the query's own thread: the purge of old batches when the storage fails.
    r"ErrorNotifier: A fatal error has occurred",
    # A slow listener on a short queue.
    rf"AsyncEventQueue: Dropping event from queue ({'|'.join(QUEUES)})\.",
    # Spark missed the end of an executor, and notices it by the missing heartbeats.
    r"TaskSchedulerImpl: Lost an executor \S+ \(already removed\)",
    # A rescale that loses its executors or its storage is rolled back.
    r"(StateRewriter|OfflineStateRepartitionRunner): State re\w+ failed",
    # A quota, or something else in Kubernetes, refuses pods.
    r"ExecutorPodsAllocator: Failed to create executor pod \d+",
    # Spark waits a second for the pod of its driver, so that executors find it, and then starts all the same.
    r"Utils: Uncaught exception in thread \S+ io\.fabric8\.\S+\.KubernetesClientTimeoutException",
)


@frozen
class Size:
    """The resources of the driver and its policy process; threads by name, without numbers."""

    threads: Counter[str]
    files: int
    ports: int
    heap_mb: int
    policy_mb: int

    def __str__(self) -> str:
        return (
            f"{self.threads.total()} threads, {self.files} files, {self.ports} ports, {self.heap_mb} MB of "
            f"objects, {self.policy_mb} MB of the policy process"
        )

    def idle_threads(self) -> list[str]:
        """Name our kinds of threads that are more numerous than a driver with running queries needs."""
        ours = {name: count for name, count in self.threads.items() if name.startswith("elastic-")}
        return [
            f"{count} threads {name}" for name, count in ours.items() if count > _CONNECTIONS.get(name, 1)
        ]

    def more_than(self, other: Size) -> list[str]:
        """Name the resources that have grown beyond normal variation."""
        said = []
        if self.threads.total() > other.threads.total() + MORE_THREADS:
            more = (self.threads - other.threads).most_common(8)
            said.append(f"{self.threads.total()} threads instead of {other.threads.total()}, more are {more}")
        counts = (
            ("files", self.files, other.files, MORE_FILES),
            ("ports", self.ports, other.ports, MORE_PORTS),
            ("MB of objects", self.heap_mb, other.heap_mb, MORE_HEAP_MB),
            ("MB of the policy process", self.policy_mb, other.policy_mb, MORE_POLICY_MB),
        )
        said += [f"{now} {what} instead of {then}" for what, now, then, limit in counts if now > then + limit]
        return said


def size_of(world: World) -> Size:
    """Return the driver's threads, files, ports and reachable objects, and the policy's memory."""
    pid = world.process.pid
    stacks = tool_output(JSTACK, str(pid))
    names = (name for name in _THREAD.findall(stacks) if not name.startswith(_POOLS))
    names = (re.sub(r"[0-9a-f]{8}-[0-9a-f-]+|\d+", "#", name) for name in names)
    return Size(
        threads=Counter(names),
        files=psutil.Process(pid).num_fds(),
        ports=len(listening(pid)) - ports_left_by_spark(world.process.log),
        heap_mb=sum(int(words[2]) for words in histogram(pid)) >> 20,
        policy_mb=sum(policy.memory_info().rss for policy in world.policies()) >> 20,
    )


def ports_left_by_spark(log: Path) -> int:
    """Count the ports that Spark has left open: one for each Python process that declares a query's state.

    `PythonWorkerFactory` closes a channel while it is registered with a selector that stays open, so the
    channel stays open too.
    """
    return log.read_text(errors="replace").count(_DECLARES_STATE)


@define
class Recovery:
    """The recovery from faults: its duration in seconds, and the remaining problems."""

    seconds: float = 0.0
    broken: list[str] = field(factory=list)


def recover(world: World, *, started: bool = False) -> Recovery:
    """Wait until everything has recovered, within the time limit: a longer one after a driver's start."""
    limit_s = world.started_s if started else world.recovered_s
    began = time.monotonic()
    before = dict(world.tail.counts())
    slots_said = looked_for_lost = False
    slots_due = world.slots_s
    result = Recovery()
    while True:
        passed = time.monotonic() - began
        wrong = list(_behind(world, before))
        # The other checks slow the machine down; a query that is behind has not recovered anyway.
        if not wrong or passed > world.slots_s:
            wrong += not_well(world)
        result.seconds = round(passed, 2)
        if not wrong:
            return result
        if not world.process.running:
            result.broken.append(f"the application has ended with code {world.process.exit_code}")
            return result
        if passed > world.slots_s and not looked_for_lost and any(MISSING in what for what in wrong):
            # A defect of Spark's, which is counted: the application cannot do anything about it.
            if world.replace_lost():
                # For an executor that is about to start.
                slots_due = time.monotonic() - began + world.slots_s
            looked_for_lost = True
        if passed > slots_due and not slots_said and any(what.startswith("slots") for what in wrong):
            slots_said = True
            slots = next(what for what in wrong if what.startswith("slots"))
            result.broken.append(f"after {world.slots_s:g} s {slots}")
        if passed > limit_s:
            result.broken += [f"after {limit_s:g} s {what}" for what in wrong]
            return result
        time.sleep(_POLL_S)


def _behind(world: World, before: dict[str, int]) -> Iterator[str]:
    counts = world.tail.counts()
    for name in world.names:
        # The first of two may have been under way; it is committed when the second is written.
        if counts[name] < before[name] + 2:
            yield f"{name} has written {counts[name] - before[name]} batches"


def not_well(world: World) -> Iterator[str]:
    """Name the current problems."""
    living = len(world.executors())
    wanted, what_for = world.wanted_executors()
    if living != wanted:
        yield f"{MISSING}: {living} for {wanted} {what_for}"
    if not world.plugin:
        return
    if len(world.policies()) != 1:
        yield f"there are {len(world.policies())} policy processes"
    try:
        slots = world.api.get("/overview")["slots"]["now"]
        if slots != living:
            yield f"slots are {slots}, executors that live {living}"
        for name, query in world.queries().items():
            if query["state"] != "Executing":
                yield f"{name} is {query['state']}"
            elif world.mode == "reactive" and query["partitions"] != living:
                yield f"{name} has {query['partitions']} partitions for {living} slots"
    except Failure as failure:
        yield f"the API says: {failure}"


def repeated(world: World, windows: list[tuple[int, int]]) -> list[str]:
    """Name batches that were written twice outside the `windows` (epoch ms) of their faults."""
    said = []
    for name in world.stateful:
        seen: dict[int, int] = {}
        for batch in written(world.output, name):
            if batch.batch in seen and not _within(windows, batch.at):
                said.append(f"{name} has written batch {batch.batch} at {seen[batch.batch]} and {batch.at}")
            seen[batch.batch] = batch.at
    return said


def jobs(world: World, windows: list[tuple[int, int]]) -> tuple[int, list[str]]:
    """Count the batch jobs, and name those that were wrong, or failed without the loss of an executor."""
    done = _noted(world, "jobs")
    said = []
    for job in done:
        if "error" not in job:
            said += [] if job["right"] else [f"a batch job that ended at {job['at']} has counted wrongly"]
        elif not _within(windows, job["at"]):
            said.append(f"a batch job has failed at {job['at']}: {job['error'][:300]}")
    return len(done), said


def badly_restarted(world: World, windows: list[tuple[int, int]]) -> list[str]:
    """Name waiters of stopped queries that have not returned, and restarts that failed without a fault."""
    said = _noted(world, "again")
    waiting = [
        f"{line['waits']}: a waiter has not returned, at {line['at']}" for line in said if "waits" in line
    ]
    return waiting + [
        f"a query could not be stopped and started, at {line['at']}: {line['error'][:300]}"
        for line in said
        if "error" in line and not _within(windows, line["at"])
    ]


def _noted(world: World, name: str) -> list[Json]:
    """Return the lines of a file written by the application."""
    file = world.output / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _within(windows: list[tuple[int, int]], at: int) -> bool:
    return any(start <= at <= end for start, end in windows)


def secrets_answered(world: World) -> list[str]:
    """Name the readable resources of the REST API that reveal the secret."""
    client = Client(world.api.url, API)
    try:
        ids = [query["id"] for query in world.queries().values()]
        readable = [
            path for path, methods in world.api.get("/openapi.json")["paths"].items() if "get" in methods
        ]
        of_query = [path for path in readable if "{number}" not in path and "{rescale}" not in path]
        asked = {path.format(query=query) for path in of_query for query in ids or [""]}
        # Not with the driver's own client, which accepts only objects: an answer may be a list.
        return [
            f"the answer of {path} has the secret"
            for path in sorted(asked)
            if SECRET in client.get(path).text
        ]
    except (Failure, OSError) as failure:
        return [f"the API says: {failure}"]


def secrets_told(world: World) -> list[str]:
    """Name the journals and logs in which our code has revealed the secret."""
    said = [f"{path.name} has the secret" for path in world.journals() if SECRET in path.read_text()]
    for log in world.logs:
        # Including the lines of an exception, which follow those that name us.
        entries = _ENTRY.split(log.read_text(errors="replace"))
        told = (entry for entry in entries if SECRET in entry and "spark-elastic" in entry)
        said += [f"the log has the secret: {entry[:300]}" for entry in told]
    return said


def unknown_errors(log: str) -> dict[str, int]:
    """Count the error lines of no known cause in drivers' logs."""
    found: dict[str, int] = {}
    for match in _ERROR.finditer(log):
        line = f"{match[1]}: {' '.join(match[2].splitlines())[:200]}"
        if not any(re.match(known, line) for known in KNOWN_ERRORS):
            found[line] = found.get(line, 0) + 1
    return found


@define
class Final:
    """The findings at the end."""

    rows: int = 0
    jobs: int = 0
    conversions: int = 0
    moves: int = 0
    in_place: int = 0
    at_once: int = 0
    broken: list[str] = field(factory=list)


def final(world: World, windows: list[tuple[int, int]], first_size: Size | None) -> Final:
    """End input and application, then check everything that can only be checked as a whole."""
    result = Final()
    check = result.broken.append
    with suppress(psutil.NoSuchProcess):
        if world.process.running:
            _check_size(world, first_size, check)
    if world.plugin and world.process.running:
        result.broken += secrets_answered(world)
    world.feeder.stop()
    (world.output / "_done").touch()
    code = world.process.wait(2 * world.recovered_s)
    if code != 0:
        check(f"the application has not ended well: exit code {code}")
    world.end()
    for name in world.names:
        rows, different = differences(world.output, world.sink, world.folder / "incoming", name)
        result.rows += rows
        result.broken += different
    result.broken += repeated(world, windows) + badly_restarted(world, windows) + secrets_told(world)
    result.conversions = sum(log.read_text(errors="replace").count(_CONVERTED) for log in world.logs)
    result.jobs, wrong = jobs(world, windows)
    result.broken += wrong
    for journal in world.journals():
        moves = Moves.of(journal)
        result.moves += moves.moved
        result.in_place += moves.in_place
        result.at_once = max(result.at_once, moves.at_once)
        result.broken += moves.broken + replayed(journal)
    for left in world.place("savepoints").glob(".savepoint-*"):
        check(f"a savepoint was left half done: {left}")
    return result


def _check_size(world: World, first: Size | None, check: Callable[[str], None]) -> None:
    def too_much() -> list[str]:
        size = size_of(world)
        return size.idle_threads() + (size.more_than(first) if first is not None else [])

    try:
        # Copies of state that are under way have threads, and take long on a busy machine.
        eventually(lambda: not too_much(), "the driver is small", world.recovered_s, every_s=2.0)
    except AssertionError:
        check(f"the driver has grown: {too_much()}")
    except subprocess.SubprocessError as error:
        check(f"nothing can be asked about the driver's threads and objects: {error}")
        return
    world.say(f"the driver has {size_of(world)}; after some steps it had {first}")
