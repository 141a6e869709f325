"""`spark-elastic demo`: run a plain application on a real cluster and show how it scales."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from spark_elastic_lab.demo.data import DataFailure
from spark_elastic_lab.demo.prerequisites import fetch_problem, problems
from spark_elastic_lab.demo.processes import ProcessFailure
from spark_elastic_lab.demo.source import FileSource, KafkaSource, Source
from spark_elastic_lab.demo.steps import Mode
from spark_elastic_tools.maven import FetchError

_WIDTH_OF_A_LOG = 160
_EXIT_FAILED = 1
_EXIT_CANNOT = 2
_EXIT_INTERRUPTED = 130


_MODES = [mode.value for mode in Mode]


def _mode(context: click.Context, option: click.Parameter, value: str) -> Mode:
    """Return the mode of this name; for an unknown name, report the valid ones."""
    if value not in _MODES:
        known = ", ".join(_MODES)
        raise click.BadParameter(f"there is no mode '{value}', only {known}: type --mode {_MODES[-1]}, say")
    return Mode(value)


def _complete_mode(context: click.Context, option: click.Parameter, begun: str) -> list[str]:
    return [mode for mode in _MODES if mode.startswith(begun)]


@click.command()
@click.option(
    "--source",
    "source_name",
    type=click.Choice(["files", "kafka"]),
    default="files",
    show_default=True,
    help="What the application reads: files, or a topic of a Kafka broker, whose jars are downloaded.",
)
@click.option(
    "--token-provider",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --source kafka: the jar spark-token-provider-kafka, where it can't be downloaded.",
)
@click.option(
    "--mode",
    metavar=f"[{'|'.join(_MODES)}]",
    callback=_mode,
    shell_complete=_complete_mode,
    default=Mode.REACTIVE.value,
    show_default=True,
    help="Workers come and go, bounds in a policy file change, or the load does.",
)
@click.option("--keep", is_flag=True, help="Leave everything running after the scenario, until Ctrl-C.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the summary to this file.")
@click.option("--plain", is_flag=True, help="Print lines instead of a live display, also in a terminal.")
def demo(
    source_name: str,
    token_provider: Path | None,
    mode: Mode,
    keep: bool,
    json_file: Path | None,
    plain: bool,
) -> None:
    """Watch a plain streaming application follow a real Spark cluster that grows and shrinks.

    With --mode adaptive, it follows the bounds in a policy file instead, and so does the cluster. With --mode
    autoscale, the load doubles and falls again, and the policy autoscale adds and removes executors.

    Takes about two minutes; with --mode autoscale, about four. The exit code is 0 only if every check holds,
    1 if one does not, 2 if something is missing on this machine.
    """
    missing = problems()
    for problem in missing:
        click.echo(f"spark-elastic demo: {problem}", err=True)
    if missing:
        sys.exit(_EXIT_CANNOT)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="spark-elastic-demo-"))
    try:
        source = KafkaSource(folder, token_provider) if source_name == "kafka" else FileSource(folder)
        code = _run(folder, source, mode=mode, keep=keep, json_file=json_file, plain=plain)
    except FetchError as error:
        click.echo(f"spark-elastic demo: {fetch_problem(error)}", err=True)
        code = _EXIT_CANNOT
    except KeyboardInterrupt:
        code = _EXIT_INTERRUPTED
    finally:
        if keep:
            click.echo(f"logs, journal and data are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)


def _run(folder: Path, source: Source, *, mode: Mode, keep: bool, json_file: Path | None, plain: bool) -> int:
    # pyspark and rich are slow to load, and the prerequisites give clearer errors if they are missing.
    from spark_elastic_lab.demo.run import Demo, Places
    from spark_elastic_lab.demo.summary import draw_summary
    from spark_elastic_tools.live import Stage

    console = Console(force_terminal=False if plain else None)
    if not console.is_terminal:
        console.width = _WIDTH_OF_A_LOG
    try:
        with Stage(console) as stage:
            summary = Demo(Places(folder), source, stage, keep, mode).run()
    except (ProcessFailure, DataFailure) as error:
        click.echo(f"spark-elastic demo: {error}", err=True)
        return _EXIT_FAILED
    console.print(draw_summary(summary))
    if json_file is not None:
        json_file.write_text(summary.to_json() + "\n")
    return 0 if summary.ok else _EXIT_FAILED


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that every started process is stopped."""
    raise KeyboardInterrupt
