"""Run the two sides in turns, measure each run, and compare what they wrote."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from attrs import frozen

from spark_elastic_lab.compare.command import SUBMIT, Command, CommandError, arguments, filled
from spark_elastic_lab.compare.cost import Cost, CostError, measuring_settings, read_cost
from spark_elastic_lab.compare.sides import SIDES, Side, rounds
from spark_elastic_lab.demo.processes import LoggedProcess

_ROWS = Path(__file__).with_name("rows.py")
_GRACE_S = 20.0
_LAST_LINES = 40
"""Spark writes some twenty lines after an error, as it stops."""
_SECOND_LOOK_S = 3_600.0
_EXISTS = re.compile(r"PATH_ALREADY_EXISTS|path \S+ already exists", re.IGNORECASE)
#: Settings with which the outputs are read, as the job wrote them.
_OF_FILES = ("spark.hadoop.", "spark.jars", "spark.driver.extraClassPath", "spark.driver.memory")


@frozen(kw_only=True)
class Plan:
    """What is compared: the command, Spark's settings in it, and what each side adds to these.

    `jar` is sparkMeasure's, None to measure with the event log alone. `output` is where the job writes to,
    with {side} and perhaps {round}, and is read with `options`.
    """

    command: Command
    conf: Mapping[str, str]
    settings: Mapping[Side, Mapping[str, str]]
    jar: Path | None
    output: str | None
    options: Mapping[str, str]


@frozen(kw_only=True)
class Run:
    """One run: its round, from 1 on, its side, and what it took."""

    number: int
    side: Side
    cost: Cost


@frozen(kw_only=True)
class Failed(Exception):
    """A run failed, or could not be measured: `why` says how, and `log` has its last lines."""

    number: int
    side: Side
    exit_code: int
    why: str
    log: str

    def __str__(self) -> str:
        return f"round {self.number}, {self.side}: {self.why}"


def run_rounds(plan: Plan, count: int, folder: Path, on_run: Callable[[Run], None]) -> list[Run]:
    """Run both sides `count` times, and call `on_run` after each run.

    Logs and measurements are written into `folder`. Raises Failed at the first run that fails, and
    CommandError if a command cannot be started.
    """
    done = []
    for number, side in rounds(count):
        done.append(_run(plan, number, side, folder / f"{number}-{side}"))
        on_run(done[-1])
    return done


def _run(plan: Plan, number: int, side: Side, folder: Path) -> Run:
    settings = measuring_settings(plan.conf, plan.settings[side], folder, plan.jar)
    command = plan.command.adding(settings, _places(side, number))
    code, wall_s, log = _wait(command, folder / "log.txt")
    if code != 0:
        why = f"the application failed with exit code {code}"
        if _EXISTS.search(log) is not None:
            why += " (where it writes to was there already: type {round} in the path, or let it overwrite)"
        raise Failed(number=number, side=side, exit_code=code, why=why, log=log)
    try:
        cost = read_cost(folder, wall_s, recorded=plan.jar is not None)
    except CostError as error:
        raise Failed(number=number, side=side, exit_code=code, why=str(error), log=log) from error
    return Run(number=number, side=side, cost=cost)


def _places(side: Side, number: int) -> dict[str, str]:
    return {"{side}": side, "{round}": str(number)}


def _wait(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> tuple[int, float, str]:
    """Run a command to its end; return its exit code, how long it took (s), and the end of its log.

    Whatever interrupts the wait ends the command and all that it started.
    """
    began = time.monotonic()
    try:
        process = LoggedProcess(
            PurePath(command[0]).name,
            command,
            env={**os.environ, **(environment or {})},
            log=log,
            cwd=Path.cwd(),
        )
    except OSError as error:
        raise CommandError(f"{command[0]} cannot be started: {error.strerror}") from error
    try:
        code = None
        while code is None:
            code = process.wait(_SECOND_LOOK_S)
        return code, time.monotonic() - began, process.log_tail(_LAST_LINES)
    finally:
        if process.running:
            process.stop(_GRACE_S)


# ---- What they wrote.


def compare_outputs(plan: Plan, last: int, since_ms: int, folder: Path) -> Mapping[str, Any]:
    """Return what `rows.compare` found in the outputs of the round `last`, or `error` if it could not."""
    assert plan.output is not None
    places: dict[str, str] = {side: filled(plan.output, _places(side, last)) for side in SIDES}
    request, result = folder / "request.json", folder / "outputs.json"
    asked = {**places, "options": dict(plan.options), "since": since_ms}
    request.write_text(json.dumps(asked), encoding="utf-8")
    settings = {
        **{key: value for key, value in plan.conf.items() if key.startswith(_OF_FILES)},
        "spark.master": "local[*]",
        "spark.submit.deployMode": "client",
        "spark.plugins": "",
        "spark.extraListeners": "",
        "spark.eventLog.enabled": "false",
        "spark.ui.enabled": "false",
    }
    program = plan.command.program
    submit = str(Path(program).with_name(SUBMIT)) if os.sep in program else SUBMIT
    kept = [
        word
        for option in ("--properties-file", "--packages", "--repositories")
        if (value := plan.command.value(option)) is not None
        for word in (option, value)
    ]
    command = [submit, *kept, *arguments(settings), str(_ROWS), str(request), str(result)]
    environment = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    code, _, log = _wait(command, folder / "outputs.txt", environment)
    if code != 0 or not result.is_file():
        return {"error": f"Spark could not read the outputs (exit code {code}):\n{log}"}
    found: Mapping[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found
