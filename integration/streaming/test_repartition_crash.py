"""The driver is killed at each step of a state re-partitioning; the application, started again, is right.

One base checkpoint is made, and copied for each step. The re-partitioning is ordered by a stand-in (see
repartitioning_policy.py), everything else is decided by the real policy.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from integration.streaming.launch import WITH_PLUGIN, submitted
from integration.streaming.stand_ins import our_script, program
from integration.streaming.waiting import PATIENCE_S
from spark_elastic.demo.processes import LoggedProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

KEYS = 50_000
# What Spark does in a re-partitioning, in its order; each is seen in the checkpoint's folder. An operator
# whose metadata has versions would get new metadata after `all_state`; that of an aggregation has none.
STEPS = ("offsets", "first_state", "all_state", "commits")
PARTITIONS = 5
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE_FILE = re.compile(r"\d+_.*\.(zip|changelog)")
# Some steps are a few milliseconds apart: the next one may be done before the signal arrives.
ATTEMPTS = 6


class Case:
    """A copy of the base checkpoint with what its batches wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self.output = folder / "output"

    def places(self) -> list[str]:
        return [str(self.checkpoint), str(self.output)]

    def copy(self, name: str) -> Case:
        target = self.folder.parent / name
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(self.folder, target)
        return Case(target)

    def state_files(self) -> set[tuple[str, str]]:
        """Return partition and name of each file of the state, finished or not."""
        found = set()
        for partition in os.scandir(self.checkpoint / "state" / "0"):
            if partition.name.isdigit():
                found |= {
                    (partition.name, file.name) for file in os.scandir(partition.path) if file.is_file()
                }
        return found

    def last_batch(self) -> int:
        return max(int(p.name) for p in (self.checkpoint / "commits").iterdir() if p.name.isdigit())

    def error(self) -> str:
        file = self.output / "error"
        return file.read_text() if file.exists() else ""


class Steps:
    """How far a re-partitioning has come, told from the folder."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._state = case.state_files()
        number = case.last_batch() + 1
        self._files = {
            "offsets": case.checkpoint / "offsets" / str(number),
            "commits": case.checkpoint / "commits" / str(number),
        }

    def done(self, step: str) -> bool:
        if step in self._files:
            return self._files[step].exists()
        new = self._case.state_files() - self._state
        finished = {partition for partition, name in new if STATE_FILE.fullmatch(name)}
        return bool(new) if step == "first_state" else len(finished) == PARTITIONS

    def last(self) -> str | None:
        return next((step for step in reversed(STEPS) if self.done(step)), None)


class Workplace:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.input = folder / "input"
        self.input.mkdir()
        self._parts = 0
        order = our_script("repartitioning_policy.py", str(PARTITIONS))
        self._repartitioning = program(folder / "policy", order)

    def put(self, files: int) -> None:
        for _ in range(files):
            keys = pa.array(range(KEYS), pa.int64())
            values = pc.add(pc.multiply(keys, 3), self._parts)
            hidden = self.input / f".{self._parts}.new"
            pq.write_table(pa.table({"key": keys, "value": values}), hidden)
            os.replace(hidden, self.input / f"{self._parts:05d}.parquet")
            self._parts += 1

    def run(self, name: str, cases: list[Case], conf: dict[str, str]) -> LoggedProcess:
        """Run the application to its end."""
        arguments = [str(self.input), *(place for case in cases for place in case.places())]
        with submitted("upserts.py", arguments, self.folder / name, conf) as process:
            code = process.wait(3 * PATIENCE_S)
            assert code == 0, process.log_tail()
        return process

    def crash(self, base: Case, step: str) -> Case:
        """Kill the driver right after a step; returns what it has left."""
        for attempt in range(ATTEMPTS):
            case = base.copy(f"killed-at-{step}")
            steps = Steps(case)
            arguments = [str(self.input), *case.places()]
            conf = {**WITH_PLUGIN, "spark.elastic.python": self._repartitioning}
            with submitted("upserts.py", arguments, self.folder / f"crash-{step}-{attempt}", conf) as process:
                deadline = time.monotonic() + PATIENCE_S
                while not steps.done(step):
                    assert process.running, process.log_tail()
                    assert time.monotonic() < deadline, process.log_tail()
                    time.sleep(0.0005)
                os.kill(process.pid, signal.SIGKILL)
                process.wait(10)
            # What the application says of the loss of its driver.
            (case.output / "error").unlink(missing_ok=True)
            if steps.last() == step:
                return case
        raise AssertionError(f"the driver was never dead before the step after '{step}'")

    def expected(self) -> pa.Table:
        """Return what a batch query over all input gives; of another engine than the one under test."""
        rows = pq.read_table(self.input)
        totals = rows.group_by("key").aggregate([("value", "count"), ("value", "sum")])
        return totals.rename_columns(["key", "n", "total"]).sort_by("key")


def last_values(case: Case) -> pa.Table:
    """Return the last value of each key over all batches that were written."""
    last: dict[int, tuple[int, int]] = {}
    for batch in sorted(path for path in case.output.iterdir() if path.is_dir()):
        table = pq.read_table(batch)
        columns = (table[name].to_pylist() for name in ("key", "n", "total"))
        last.update((key, (n, total)) for key, n, total in zip(*columns, strict=True))
    keys = sorted(last)
    return pa.table(
        {"key": keys, "n": [last[key][0] for key in keys], "total": [last[key][1] for key in keys]}
    )


class Outcome:
    def __init__(self, work: Workplace, cases: dict[str, Case], plain: dict[str, Case]) -> None:
        self.expected = work.expected()
        self.cases = cases
        self.plain = plain


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    work = Workplace(tmp_path_factory.mktemp("crash"))
    work.put(2)
    (work.folder / "base").mkdir()
    base = Case(work.folder / "base")
    work.run("driver-base", [base], WITH_PLUGIN)
    assert base.error() == ""
    work.put(2)
    cases = {step: work.crash(base, step) for step in STEPS}
    plain = {step: case.copy(f"plain-{step}") for step, case in cases.items()}
    again = work.run("driver-again", list(cases.values()), WITH_PLUGIN)
    # Spark refuses at once or not at all: it needs no policy to have its own settings.
    work.run(
        "driver-plain",
        list(plain.values()),
        {
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        },
    )
    assert again.exit_code == 0
    return Outcome(work, cases, plain)


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_lost_or_doubled(outcome: Outcome, step: str) -> None:
    case = outcome.cases[step]
    assert case.error() == ""
    assert last_values(case) == outcome.expected


@pytest.mark.parametrize("step", STEPS)
def test_plain_spark_refuses_a_checkpoint_in_the_middle(outcome: Outcome, step: str) -> None:
    error = outcome.plain[step].error()
    if step == "commits":
        assert error == ""
        assert last_values(outcome.plain[step]) == outcome.expected
    else:
        assert "REPARTITION" in error
