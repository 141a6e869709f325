"""`spark-elastic replay`: check that the scheduler still makes the recorded decisions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from spark_elastic.core.actions import Action
from spark_elastic.core.batch.questions import Question
from spark_elastic.core.events import Event
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import Unreadable, read_journal
from spark_elastic.runtime.port import JsonObject
from spark_elastic.runtime.replay import Difference
from spark_elastic.runtime.replay import replay as run_again
from spark_elastic.wire import encode_action, encode_event, encode_question

_DIFFERENT = 1
_UNREADABLE = 2


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def replay(file: Path) -> None:
    """Feed the events of a decision journal to a new scheduler and compare its decisions.

    The exit code is 0 if all decisions are the same, 1 if one differs, 2 if FILE is not a journal that can be
    replayed.
    """
    try:
        result = run_again(read_journal(file), Scheduler)
    except Unreadable as error:
        click.echo(f"spark-elastic replay: {error}", err=True)
        sys.exit(_UNREADABLE)
    if result.left_out:
        click.echo(f"{result.left_out} events were left out: the start of their run is missing", err=True)
    if result.difference is not None:
        click.echo(_describe(result.difference))
        sys.exit(_DIFFERENT)
    click.echo(
        f"the same: {result.events} events, {result.actions} actions, "
        f"{result.stages} decisions about stages, {result.runs} runs"
    )


def _describe(difference: Difference) -> str:
    replayed = f"raised {difference.error}" if difference.error is not None else _line(difference.replayed)
    return "\n".join(
        (
            f"different at {difference.place}",
            f"  event     {json.dumps(_encoded(difference.event))}",
            f"  recorded  {_line(difference.recorded)}",
            f"  replayed  {replayed}",
        )
    )


def _encoded(event: Event | Question) -> JsonObject:
    return encode_event(event) if isinstance(event, Event) else encode_question(event)


def _line(decided: Action | JsonObject | None) -> str:
    if decided is None:
        return "no more actions"
    return json.dumps(encode_action(decided) if isinstance(decided, Action) else decided)
