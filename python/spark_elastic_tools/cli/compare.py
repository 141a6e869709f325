"""`spark-elastic compare`: a job with plain Spark and with the plugin, in turns."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from attrs import evolve

from spark_elastic.core.keys.rescaling import MODE
from spark_elastic.installation import Spark
from spark_elastic.jar import JarNotFoundError, jar_path
from spark_elastic.settings import load
from spark_elastic.spark_conf import ConflictError
from spark_elastic_lab.compare.command import (
    Command,
    CommandError,
    arguments,
    home_of,
    parse,
    settings_of,
    spark_of,
)
from spark_elastic_lab.compare.cost import WALL, CostError, check_jar, measure_jar
from spark_elastic_lab.compare.run import Failed, Plan, Run, compare_outputs, run_rounds
from spark_elastic_lab.compare.sides import elastic_settings, plain_settings
from spark_elastic_lab.compare.summary import Compared, as_data, as_text
from spark_elastic_tools.cli.signals import signals_interrupt

_FAILED, _INTERRUPTED = 1, 130
_SIDE, _ROUND = "{side}", "{round}"


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="-- SPARK-SUBMIT...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--rounds", "-n", type=click.IntRange(1), default=3, show_default=True, help="Runs of each side."
)
@click.option(
    "--mode",
    type=click.Choice(("reactive", "adaptive")),
    help="The plugin's mode.  [default: what is set, else reactive]",
)
@click.option(
    "--policy-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The plugin's policy file.",
)
@click.option(
    "--output",
    metavar="PATH",
    help="Compare what is written there; {side} in it and in the command is plain or elastic, {round} is a "
    "number.",
)
@click.option(
    "--reader-option",
    "reader_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="How Spark reads the output, such as header=true for CSV; repeat for more.",
)
@click.option(
    "--measure-jar",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="sparkMeasure's jar for this Spark's Scala.  [default: from Maven, with the extra measure]",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep logs, event logs and measurements in this new folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(
    command: tuple[str, ...],
    rounds: int,
    mode: str | None,
    policy_file: Path | None,
    output: str | None,
    reader_options: tuple[str, ...],
    measure_jar: Path | None,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Run a job with plain Spark and with the plugin, in turns, and compare what they took.

    \b
    spark-elastic compare --output 'out/{side}-{round}' -- \\
      spark-submit --master local[2] app.py 'out/{side}-{round}'

    Plain Spark runs the command as it is typed, the other side with what `spark-elastic conf` prints. If
    spark-defaults.conf or the command turns the plugin on, plain Spark runs with schedulerMode off. Each run
    has its event log, and sparkMeasure's flight recorder if its jar can be had.

    The exit code is 0, 1 if a run fails or the outputs differ, 2 if something is typed wrong, or 130 if it
    was interrupted, which ends the job that runs.
    """  # noqa: D301  # click wants the character itself
    try:
        plan, compared = _planned(command, rounds, mode, policy_file, output, reader_options, measure_jar)
        with signals_interrupt(), _folder(keep) as folder:
            compared = _ran(plan, compared, folder)
    except CommandError as error:
        raise click.UsageError(str(error)) from error
    except (ConflictError, JarNotFoundError) as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        _tell("interrupted: the job that ran was ended, nothing is compared")
        sys.exit(_INTERRUPTED)
    click.echo(json.dumps(as_data(compared)) if as_json else as_text(compared))
    if not compared.ok:
        sys.exit(_FAILED)


def _planned(
    words: tuple[str, ...],
    rounds: int,
    mode: str | None,
    policy_file: Path | None,
    output: str | None,
    reader_options: tuple[str, ...],
    typed_jar: Path | None,
) -> tuple[Plan, Compared]:
    """Return what to run, and the comparison without its runs."""
    command = parse(words)
    _check_places(command, output)
    home = home_of(command, os.environ)
    spark = spark_of(home)
    conf = settings_of(command, os.environ, home)
    elastic = elastic_settings(
        conf, jar=jar_path(spark), python=sys.executable, mode=mode, policy_file=policy_file
    )
    plan = Plan(
        command=command,
        conf=conf,
        settings={"plain": plain_settings(conf), "elastic": elastic},
        jar=_measure_jar(spark, typed_jar),
        output=output,
        options=dict(map(_option, reader_options)),
    )
    return plan, Compared(
        rounds=rounds,
        spark=str(spark or "Spark"),
        mode=load({**conf, **elastic})[MODE],
        measured_by="the event log" if plan.jar is None else f"sparkMeasure ({plan.jar.name})",
        added={side: arguments(settings) for side, settings in plan.settings.items()},
    )


def _measure_jar(spark: Spark | None, typed: Path | None) -> Path | None:
    if typed is not None:
        try:
            check_jar(typed, spark)
        except CostError as error:
            raise CommandError(f"--measure-jar {error}") from error
        return typed.absolute()
    try:
        return measure_jar(spark)
    except CostError as error:
        _tell(f"measuring with the event log, without sparkMeasure: {error}")
        return None


def _check_places(command: Command, output: str | None) -> None:
    if output is None:
        return
    if _SIDE not in output:
        raise CommandError(f"--output {output} has no {_SIDE}: type it where one side is told from the other")
    for place in (_SIDE, _ROUND):
        if place in output and not any(place in word for word in command.words):
            raise CommandError(f"--output {output} has {place}, but the command has not: type it there, too")


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise CommandError(f"'{text}' is no option of a reader: type --reader-option header=true")
    return key, value


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Yield a new folder, which is deleted afterwards unless the user named it."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="spark-elastic-compare-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(parents=True)
    except OSError as error:
        raise CommandError(f"--keep {keep} cannot be made ({error.strerror}): name a new folder") from error
    yield keep.absolute()


def _ran(plan: Plan, compared: Compared, folder: Path) -> Compared:
    runs: list[Run] = []
    began_ms = int(time.time() * 1_000)

    def on_run(run: Run) -> None:
        runs.append(run)
        _tell(f"round {run.number} of {compared.rounds}, {run.side}: {run.cost[WALL]:.1f} s")

    try:
        run_rounds(plan, compared.rounds, folder, on_run)
    except Failed as failed:
        return evolve(compared, runs=runs, failed=failed)
    return evolve(compared, runs=runs, output=_output(plan, compared.rounds, began_ms, folder))


def _output(plan: Plan, last: int, since_ms: int, folder: Path) -> Mapping[str, Any]:
    if plan.output is None:
        where = "type" if _has_side(plan.command) else f"type {_SIDE} in the path that the job writes to, and"
        return {"why": f"{where} --output PATH with {_SIDE} in it"}
    return compare_outputs(plan, last, since_ms, folder)


def _has_side(command: Command) -> bool:
    return any(_SIDE in word for word in command.words)


def _tell(text: str) -> None:
    click.echo(f"spark-elastic compare: {text}", err=True)
