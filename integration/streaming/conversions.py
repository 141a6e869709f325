"""Conversions of checkpoints that can be met at each of their steps, on storage that is slow or away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from attrs import frozen

from integration.class_archive import of_drivers
from integration.jdk_tools import compile_java
from integration.streaming.crashes import Case, kill_when, run
from integration.streaming.launch import WITH_PLUGIN, submitted
from integration.streaming.upserts import Values
from spark_elastic.jar import jar_path
from spark_elastic_lab.demo.cluster import SMALL_JVM
from spark_elastic_lab.demo.processes import LoggedProcess

APP = "upserts.py"
KEYS = 2_000
AT_START = {**WITH_PLUGIN, "spark.elastic.stateStore.convert": "atStart"}
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
WORK, ORIGINAL = ".spark-elastic-rewrite", ".spark-elastic-original"
NEW_STATE = re.compile(r"\d+_.*\.(zip|changelog)")
# On local[2], new queries get as many.
CONVERTED = 2
# So that each step can be met, though they are milliseconds apart.
SLOW = "rename 0 150\ndelete 0 50\n"
ATTEMPTS = 3
# Until the last of these steps, all is in a folder of its own.
STAGED = ("folder", "first_state", "all_state", "staged")


@frozen
class Kind:
    """What is converted: whether a micro-batch has begun, and the partitions before."""

    begun: bool
    partitions: int

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of a conversion, in their order. Each shows in the checkpoint's folder."""
        moved = ("moving", "first_moved", "all_moved")
        if self.begun:
            return (*STAGED, *moved, "commits", "offsets", "settings")
        return (*STAGED, *moved, "settings", "commits")

    def plain(self, step: str) -> tuple[dict[str, str], str]:
        """Return with which settings plain Spark starts after a crash, and what it says if it does not."""
        if step in STAGED:
            return {}, ""  # the checkpoint is untouched
        if step == self.steps[-1]:
            return {FORMAT: "2"}, ""
        # Spark sees a new count that is not committed; between the last two steps there may be none.
        is_seen = self.begun or step != "settings" or self.partitions != CONVERTED
        return {}, "STREAMING_UNFINISHED_REPARTITION_DETECTED" if is_seen else "CANNOT_LOAD_STATE_STORE"


KINDS = {
    "append": Kind(begun=False, partitions=5),
    "replace": Kind(begun=True, partitions=5),
    "append_same_count": Kind(begun=False, partitions=CONVERTED),
    "replace_same_count": Kind(begun=True, partitions=CONVERTED),
}


class Steps:
    """The progress of a conversion to RocksDB, format 2, according to the folder."""

    def __init__(self, case: Case, kind: Kind, partitions: int = CONVERTED) -> None:
        self._case = case
        self._kind = kind
        self._partitions = partitions
        self._last = case.last_batch()
        self._before = {log: self._entry(log, self._last) for log in ("commits", "offsets")}
        self._begun = self._entry("offsets", self._last + 1)

    def _entry(self, log: str, batch: int) -> bytes | None:
        try:
            return (self._case.checkpoint / log / str(batch)).read_bytes()
        except FileNotFoundError:
            return None

    def _written(self, within: str = "") -> set[str]:
        """Return the partitions whose new state is in the checkpoint, or in a folder there."""
        return {partition for partition, name in self._case.state_files(within) if NEW_STATE.fullmatch(name)}

    def done(self, step: str) -> bool:
        work, following = self._case.checkpoint / WORK, self._last + 1
        match step:
            case "folder":
                return work.exists()
            case "first_state":
                return bool(self._written(WORK))
            case "all_state":
                return len(self._written(WORK)) == self._partitions
            case "staged":
                return (work / "decided").exists()
            case "first_moved":
                return bool(self._written())
            case "all_moved":
                return len(self._written()) == self._partitions and not self._written(WORK)
            case "moving":
                return self._entry("offsets", following) != self._begun
            case "settings":
                final = self._entry(f"{WORK}/offsets", following)
                return final is not None and self._entry("offsets", following) == final
            case _ if self._kind.begun:
                return self._entry(step, self._last) != self._before[step]
            case _:
                return self._entry(step, following) is not None

    def last(self) -> str | None:
        """Return the last step that is done."""
        # State that has been moved is not where it was, so earlier steps need not show any more.
        return next((step for step in reversed(self._kind.steps) if self.done(step)), None)


class Workplace:
    """Input, and drivers of an application whose storage for checkpoints, under away://, can be slow."""

    def __init__(self, folder: Path, app: str = APP) -> None:
        self.folder = folder
        self._app = app
        self.values = Values(folder / "input", KEYS)
        classes = folder / "classes"
        classes.mkdir()
        compile_java(Path(__file__).parent / "AwayStorage.java", classes)
        self._odd = folder / "away.odd"
        self.storage = {
            "spark.hadoop.fs.away.impl": "AwayStorage",
            "spark.driver.extraClassPath": f"{jar_path()}:{classes}",
            "spark.driver.extraJavaOptions": f"{SMALL_JVM} {of_drivers()} -Daway={folder / 'away'}",
        }
        self._runs = 0

    @contextmanager
    def slow(self, how: str = SLOW) -> Iterator[None]:
        """Delay operations of the storage, as AwayStorage.java says."""
        self._odd.write_text(how)
        try:
            yield
        finally:
            self._odd.unlink()

    def next(self, name: str) -> Path:
        """Return another folder for the files of a process."""
        self._runs += 1
        return self.folder / f"{name}-{self._runs}"

    def run(self, cases: Sequence[Case], conf: Mapping[str, str], name: str = "driver") -> None:
        """Run the application on each case, to its end."""
        run(self._app, self.values.folder, cases, self.next(name), {**self.storage, **conf})

    def kill(self, done: Callable[[], bool], case: Case, conf: Mapping[str, str]) -> None:
        """Kill the application as soon as it has done something."""
        kill_when(done, self._app, self.values.folder, case, self.next("killed"), {**self.storage, **conf})

    @contextmanager
    def driver(self, places: Sequence[str], conf: Mapping[str, str]) -> Iterator[LoggedProcess]:
        """Start the application with a checkpoint and a folder for its output."""
        arguments = [str(self.values.folder), *places]
        with submitted(self._app, arguments, self.next("driver"), {**self.storage, **conf}) as process:
            yield process

    def base(self, partitions: int) -> Case:
        """Make a checkpoint with plain Spark, for the input up to now."""
        base = Case(self.next("base"), "away://")
        base.folder.mkdir()
        self.run([base], {"spark.sql.shuffle.partitions": str(partitions)})
        assert base.error() == ""
        return base

    def begin(self, base: Case) -> None:
        """Kill plain Spark in the middle of a micro-batch."""
        following = base.last_batch() + 1
        with self.slow("rename 0 1000\n"):
            self.kill((base.checkpoint / "offsets" / str(following)).exists, base, {})
        assert base.last_batch() == following - 1
        assert base.last_batch("offsets") == following

    def crash(self, base: Case, kind: Kind, name: str, step: str) -> Case:
        """Kill a driver with the plugin right after a step; return what it leaves."""
        with self.slow():
            for _ in range(ATTEMPTS):
                case = base.copy(name)
                steps = Steps(case, kind)
                self.kill(partial(steps.done, step), case, AT_START)
                if steps.last() == step:
                    return case
        raise AssertionError(f"the driver was never dead before the step after '{step}'")
