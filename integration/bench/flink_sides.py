"""The same keyed state in Spark with the plugin and in Flink, with workers that come and go in rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

import attrs

from integration.bench import flink_outputs
from integration.bench.application import TRIGGER_MS, Application, Variant, now_ms
from integration.bench.batches import longest_gap
from integration.bench.flink_outputs import Output, outputs_in
from integration.bench.rounds import SETTLE_BATCHES, in_force, into_interval, settle
from integration.bench.stream_app import KEYS_PER_BATCH_AT_FIRST, ROWS_PER_BATCH
from integration.flink.cluster import FlinkCluster
from integration.streaming.launch import AT_ONCE
from spark_elastic_lab.demo.cluster import Cluster, Worker
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic_tools.tail import GrowingFile

if TYPE_CHECKING:
    from typing_extensions import Self

ROWS_PER_S = ROWS_PER_BATCH * 1000 // TRIGGER_MS
_SMALLEST, _LARGEST = 2, 3
_JOB = Path(__file__).parents[1] / "flink" / "KeyedState.java"
_KEYS_PER_ROW_AT_FIRST = KEYS_PER_BATCH_AT_FIRST // ROWS_PER_BATCH
_POLL_S = 0.3
# These only bound a hang, for a state of 0 bytes and for each million keys.
_PATIENCE_S, _PATIENCE_PER_MILLION_S = 180, 600
# A key has at least so many bytes in a checkpoint.
_BYTES_PER_KEY = 1_000
# A job that has worked off the rows of a pause is not further behind.
_IN_TIME_MS = 1_000

_Found = TypeVar("_Found")


@attrs.frozen(kw_only=True)
class Change:
    """A worker came or went, or nothing happened (`steady`); times in epoch ms.

    It began with the start of the worker's process or with the signal, and ended when all had settled.
    `in_force` is None if nothing happened or the parallelism did not follow in time.
    """

    case: str
    began: int
    in_force: int | None
    ended: int


class Side(Protocol):
    """A system that runs the keyed state on two workers, and on a third that joins and goes."""

    def join(self) -> int | None:
        """Start a third worker; return when the parallelism follows (epoch ms), None if it does not."""
        ...

    def stop(self) -> int | None:
        """Stop the third worker in the system's orderly way; return as `join` does."""
        ...

    def kill(self) -> int | None:
        """Kill the third worker with SIGKILL; return as `join` does."""
        ...

    def settle(self) -> None:
        """Return when the aftermath of a change is over."""
        ...

    def gaps(self, begin: int, end: int) -> Mapping[str, float]:
        """Return the longest times (ms) without an output that end in `begin`..`end` (epoch ms).

        They are `gap_ms` and, without a new row, `new_gap_ms`; a side may add others.
        """
        ...

    def state_mb(self) -> int:
        """Return the size (MB) of the state's files, in which a key may still have older values too."""
        ...


def run(side: Side, rounds: int) -> list[Change]:
    """Let a third worker join and stop, join and be killed, in each round."""
    changes = []
    for number in range(rounds):
        # As long as two changes settle; it shows what a gap is without any change.
        changes.append(_change(side, "steady", side.settle))
        changes.append(_change(side, "join", side.join))
        into_interval(number / rounds)
        changes.append(_change(side, "stop", side.stop))
        changes.append(_change(side, "join", side.join))
        into_interval(number / rounds)
        changes.append(_change(side, "kill", side.kill))
    return changes


def _change(side: Side, case: str, act: Callable[[], int | None]) -> Change:
    began = now_ms()
    follows = act()
    side.settle()
    return Change(case=case, began=began, in_force=follows, ended=now_ms())


# ---- Spark


class SparkSide:
    """The query `stateful_large` with the plugin; a context manager that cleans up."""

    def __init__(self, folder: Path, keys: int, warm_up: int) -> None:
        conf = {**AT_ONCE, "spark.elastic.adaptiveScheduler.rescalePolicy": "always"}
        self._variant = Variant(
            name="elastic", kind="stateful_large", plugin=True, conf=conf, state_keys=keys
        )
        self._preload = -(-keys // KEYS_PER_BATCH_AT_FIRST)
        self._warm_up = warm_up
        self._patience_s = _patience_s(keys)
        self._folder = folder
        self._cluster = Cluster(folder / "spark")
        self._application: Application | None = None
        self._third: Worker | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The driver is one of its processes.
        self._cluster.stop()

    @property
    def application(self) -> Application:
        """The running application."""
        assert self._application is not None
        return self._application

    def join(self) -> int | None:
        """Implement `Side.join`."""
        began = now_ms()
        self._third = self._cluster.add_worker()
        return in_force(self.application, _LARGEST, began, self._patience_s)

    def stop(self) -> int | None:
        """Decommission the worker, as before a spot instance ends, and end it once its executor has."""
        began = now_ms()
        assert self._third is not None
        self._cluster.decommission_worker(self._third)
        follows = in_force(self.application, _SMALLEST, began, self._patience_s)
        self.application.wait_for_executors(_SMALLEST)
        self._cluster.remove_worker(self._third)
        return follows

    def kill(self) -> int | None:
        """Implement `Side.kill`."""
        began = now_ms()
        assert self._third is not None
        self._cluster.kill_worker(self._third)
        return in_force(self.application, _SMALLEST, began, self._patience_s)

    def settle(self) -> None:
        """Implement `Side.settle`."""
        settle(self.application)

    def gaps(self, begin: int, end: int) -> Mapping[str, float]:
        """Return the longest time between the ends of two micro-batches, and the part of the later one.

        A micro-batch emits new rows only.
        """
        gap = longest_gap(self.application.batches(), begin, end)
        return {"gap_ms": gap.whole_ms, "new_gap_ms": gap.whole_ms, "batch_ms": gap.batch_ms}

    def state_mb(self) -> int:
        """Implement `Side.state_mb`."""
        return round(self.application.batches()[-1].state_bytes / 1e6)

    def _start(self) -> None:
        self._cluster.__enter__()
        for _ in range(_SMALLEST):
            self._cluster.add_worker()
        self._application = Application(self._cluster, self._folder, self._variant)
        self._application.wait_for_executors(_SMALLEST)
        self._application.wait_for_batches(self._preload + self._warm_up, timeout_s=2 * self._patience_s)


# ---- Flink


class FlinkSide:
    """The job KeyedState in reactive mode; a context manager that cleans up."""

    def __init__(self, folder: Path, keys: int, warm_up: int, conf: Mapping[str, str]) -> None:
        self._outputs = folder / "outputs"
        self._outputs.mkdir()
        arguments = [str(keys), str(ROWS_PER_S), str(_KEYS_PER_ROW_AT_FIRST), str(self._outputs)]
        self._cluster = FlinkCluster(folder / "flink", _JOB, arguments, conf)
        self._keys = keys
        self._warm_up = warm_up
        self._patience_s = _patience_s(keys)
        self._files: dict[Path, GrowingFile] = {}
        self._known: list[Output] = []
        self._third: LoggedProcess | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._cluster.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.stop()

    def join(self) -> int | None:
        """Implement `Side.join`."""
        began = now_ms()
        self._third = self._cluster.add_worker()
        return self._in_force(_LARGEST, began)

    def stop(self) -> int | None:
        """Send SIGTERM to the TaskManager, which tells the JobManager that it goes."""
        began = now_ms()
        assert self._third is not None
        self._cluster.stop_worker(self._third)
        return self._in_force(_SMALLEST, began)

    def kill(self) -> int | None:
        """Implement `Side.kill`."""
        began = now_ms()
        assert self._third is not None
        self._cluster.kill_worker(self._third)
        return self._in_force(_SMALLEST, began)

    def settle(self) -> None:
        """Wait for as many checkpoints as Spark's side does for micro-batches, and until no row is late."""
        self._wait_for_checkpoints(SETTLE_BATCHES)

    def gaps(self, begin: int, end: int) -> Mapping[str, float]:
        """Return the longest time in which a range of keys had no output at all, and no new row."""
        known = self._read()
        return {
            "gap_ms": flink_outputs.longest_gap(known, begin, end),
            "new_gap_ms": flink_outputs.longest_gap(known, begin, end, new=True),
        }

    def state_mb(self) -> int:
        """Implement `Side.state_mb`."""
        return round(self._checkpoints()[1] / 1e6)

    def _start(self) -> None:
        self._cluster.__enter__()
        for _ in range(_SMALLEST):
            self._cluster.add_worker()
        self._poll(lambda: self._checkpoints()[1] >= self._keys * _BYTES_PER_KEY or None, "fill the state")
        self._wait_for_checkpoints(self._warm_up)

    def _in_force(self, parallelism: int, moment: int) -> int | None:
        # A job that fails at every start would not come into force either.
        return self._poll(
            lambda: flink_outputs.in_force_since(self._read(), parallelism, moment),
            f"run with parallelism {parallelism}",
        )

    def _wait_for_checkpoints(self, count: int) -> None:
        enough = self._checkpoints()[0] + count

        def done() -> bool | None:
            if self._checkpoints()[0] < enough:
                return None
            return flink_outputs.behind_ms(self._read()) <= _IN_TIME_MS or None

        self._poll(done, "settle")

    def _checkpoints(self) -> tuple[int, int]:
        """Return the number of completed checkpoints, and the bytes of state in the last of them."""
        said = self._cluster.job("/checkpoints")
        last = said["latest"]["completed"]
        return said["counts"]["completed"], last["state_size"] if last else 0

    def _poll(self, look: Callable[[], _Found | None], what: str) -> _Found:
        deadline = time.monotonic() + self._patience_s
        while time.monotonic() < deadline:
            found = look()
            if found is not None:
                return found
            time.sleep(_POLL_S)
        tail = self._cluster.job_manager.log_tail()
        raise ProcessFailure(f"the job does not {what} in {self._patience_s:g} s\n{tail}")

    def _read(self) -> list[Output]:
        for path in self._outputs.iterdir():
            self._known += outputs_in(self._files.setdefault(path, GrowingFile(path)).new_lines())
        return self._known


def _patience_s(keys: int) -> float:
    return _PATIENCE_S + _PATIENCE_PER_MILLION_S * keys / 1e6
