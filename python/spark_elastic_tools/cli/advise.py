"""`spark-elastic advise`: what an application that ran without the plugin would gain from it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import click

from spark_elastic.installation import installed_spark
from spark_elastic.jar import JarNotFoundError, jar_path
from spark_elastic.spark_conf import ConflictError, plugin_conf
from spark_elastic_lab.advice.advice import Advice
from spark_elastic_lab.advice.advice import advise as advise_on
from spark_elastic_lab.advice.data import as_data
from spark_elastic_lab.advice.page import as_page
from spark_elastic_lab.advice.stages import StagesSeen
from spark_elastic_lab.advice.text import as_text
from spark_elastic_lab.advice.told import Told
from spark_elastic_lab.advice.what_if import TooLittle
from spark_elastic_tools.cli.driver import Where
from spark_elastic_tools.event_logs.files import EventLog, LogError, find_logs
from spark_elastic_tools.event_logs.history_server import fetched_logs, is_address

_FAILED, _WRONG = 1, 2


@click.command()
@click.argument("places", metavar="EVENTLOG...", nargs=-1, required=True)
@click.option("--app", help="With a History Server: the application's id, if it has several.")
@click.option(
    "--header", multiple=True, metavar="'NAME: VALUE'", help="Sent to the History Server, such as a login."
)
@click.option(
    "--trigger",
    "triggers",
    multiple=True,
    metavar="QUERY=SECONDS",
    help="The trigger interval of a query, which a log does not contain.",
)
@click.option("--max-lag", type=click.FloatRange(0, min_open=True), help="The objective (s).")
@click.option(
    "--price", type=click.FloatRange(0), metavar="PER_CORE_HOUR", help="Also print what the hours cost."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array with an object per log.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write a page with pictures."
)
def advise(
    places: tuple[str, ...],
    app: str | None,
    header: tuple[str, ...],
    triggers: tuple[str, ...],
    max_lag: float | None,
    price: float | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Read event logs of plain Spark, and say what spark-elastic would change.

    EVENTLOG is a log, the folder of a rolled log, a folder with logs, or the address of a History Server such
    as http://localhost:18080. The logs may be compressed or unfinished. Nothing is sent anywhere.

    The exit code is 0, 1 if a log has too little to say anything about it, or 2 if an option is invalid or a
    log cannot be read.
    """
    intervals = dict(_interval(text) for text in triggers)
    found: list[Advice] = []
    poor: list[str] = []
    try:
        with ExitStack() as stack:
            for log in _logs(places, app, _headers(header), stack):
                try:
                    found.append(_read(log, intervals, max_lag, price))
                except TooLittle as error:
                    poor.append(f"{log.name}: {error}")
        _check_names(intervals, found)
    except LogError as error:
        click.echo(f"spark-elastic advise: {error}", err=True)
        sys.exit(_WRONG)
    lines = _lines()
    if as_json:
        click.echo(json.dumps([as_data(one, lines) for one in found]))
    else:
        click.echo("\n\n".join(as_text(one, lines) for one in found))
    if html is not None:
        try:
            html.write_text(as_page(found, lines), encoding="utf-8")
        except OSError as error:
            click.echo(f"spark-elastic advise: {html} cannot be written: {error.strerror}", err=True)
            sys.exit(_WRONG)
    for text in poor:
        click.echo(f"spark-elastic advise: too little to go on: {text}", err=True)
    if poor:
        sys.exit(_FAILED)


def _logs(
    places: tuple[str, ...], app: str | None, headers: Mapping[str, str], stack: ExitStack
) -> Iterator[EventLog]:
    for place in places:
        if is_address(place):
            yield from stack.enter_context(fetched_logs(place, app, headers))
        else:
            yield from find_logs(Path(place))


def _read(log: EventLog, triggers: Mapping[str, float], max_lag: float | None, price: float | None) -> Advice:
    stages = StagesSeen()
    told = Told(on_stage=stages.add)
    try:
        told.read(log.events(Told.wants))
    except (KeyError, TypeError, ValueError) as error:
        raise LogError(
            f"{log.name} has an event in a form that Spark 3.5 to 4.3 do not write ({error!r}): "
            "was it written by another version?"
        ) from error
    if not told.events:
        raise LogError(f"{log.name} has no event of Spark's: name a file below spark.eventLog.dir")
    return advise_on(told, stages, log=log.name, triggers=triggers, objective_s=max_lag, price=price)


def _interval(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    try:
        seconds = float(value.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not (name and equals and 0 <= seconds < float("inf")):
        raise click.UsageError(f"'{text}' is no query and interval: type --trigger counts=10")
    return name, seconds


def _check_names(triggers: Mapping[str, float], found: list[Advice]) -> None:
    known = {name for one in found for query in one.queries for name in (query.name, query.query)}
    for name in triggers:
        if found and name not in known:
            names = ", ".join(sorted(query.name for one in found for query in one.queries)) or "none"
            raise LogError(f"--trigger {name}: there is no such query, those in the log are: {names}")


def _headers(header: tuple[str, ...]) -> Mapping[str, str]:
    return Where(url=None, app=None, master_ui=None, user=None, token_file=None, header=header).headers()


def _lines() -> Mapping[str, str] | None:
    """Return the settings that turn the plugin on here, None if this installation has no jar."""
    try:
        return plugin_conf({}, jar=jar_path(installed_spark()), python=sys.executable)
    except (ConflictError, JarNotFoundError):
        return None
