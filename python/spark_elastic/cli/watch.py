"""`spark-elastic watch`: a journal as a live picture."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.console import Console

from spark_elastic.demo.board import Board
from spark_elastic.demo.stage import Stage
from spark_elastic.demo.tail import JournalTail

_TICK_S = 0.2


@click.command()
@click.argument("journal", type=click.Path(path_type=Path))
def watch(journal: Path) -> None:
    """Show the queries and executors of an application from its JOURNAL, while it runs, until Ctrl-C.

    Where there is no terminal, prints one line for each decision and change.
    """
    tail = JournalTail(journal)
    board = Board()
    try:
        with Stage(Console()) as stage:
            while tail.error is None:
                tail.pump(board)
                stage.show(board)
                time.sleep(_TICK_S)
    except KeyboardInterrupt:
        return
    click.echo(f"spark-elastic watch: {tail.error}", err=True)
    sys.exit(1)
