"""`spark-elastic watch`: a live view of an application."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

from spark_elastic.runtime.entries import Unreadable
from spark_elastic.runtime.publisher import DECISIONS_KEPT
from spark_elastic_tools.cli.driver import DriverCommand, Where, asks_driver, console
from spark_elastic_tools.client import Busy, NoDriver, Refused
from spark_elastic_tools.live import LOG_LINES, Look, Stage
from spark_elastic_tools.recorded import Recorded
from spark_elastic_tools.tail import JournalTail

_JOURNAL_TICK_S = 0.2
_DRIVER_TICK_S = 1.0


@click.command(cls=DriverCommand)
@click.argument("journal", type=click.Path(path_type=Path), required=False)
@asks_driver
def watch(where: Where, journal: Path | None) -> None:
    """Show the queries and executors of a running application, until Ctrl-C.

    Asks the driver every second, or follows the application's JOURNAL. Without a terminal, prints one line
    for each decision and change.
    """
    try:
        if journal is None:
            _watch_driver(where)
        else:
            _watch_journal(journal)
    except KeyboardInterrupt:
        return


def _watch_driver(where: Where) -> None:
    look = Look(where.driver(), past=LOG_LINES)
    first = look.take()
    try:
        with Stage(console()) as stage:
            stage.show(first)
            _go_on(look, stage, lambda: time.sleep(_DRIVER_TICK_S))
    except NoDriver as gone:
        raise NoDriver(f"the application has ended, or its driver cannot be reached: {gone}") from gone


def _watch_journal(journal: Path) -> None:
    recorded, tail = Recorded(), JournalTail(journal)

    def follow() -> None:
        time.sleep(_JOURNAL_TICK_S)
        tail.pump(recorded)
        if tail.error is not None:
            raise tail.error

    try:
        with Stage(console()) as stage:
            _go_on(Look(recorded, past=DECISIONS_KEPT), stage, follow)
    except Unreadable as error:
        raise Refused(f"no journal that can be shown: {error}") from error


def _go_on(look: Look, stage: Stage, wait: Callable[[], None]) -> None:
    """Show one snapshot after another; skip those for which the policy process is busy or gone."""
    answers = True
    while True:
        wait()
        try:
            snapshot = look.take()
        except Busy as busy:
            if answers:
                stage.say(str(busy))
            answers = False
        else:
            answers = True
            stage.show(snapshot)
