"""Draw a board for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from spark_elastic.core.events import ExecutorInfo
from spark_elastic.demo.board import Board, QueryBoard
from spark_elastic.demo.narrate import brief

_STATES = {
    "running": "green",
    "held": "yellow",
    "submitted": "yellow",
    "stopping": "yellow",
    "stopped": "yellow",
    "restarting": "yellow",
    "failed": "red",
    "finished": "dim",
}


def draw_board(board: Board) -> RenderableType:
    """Draw slots, executors and queries."""
    return Group(_slots(board), _queries(board.queries.values()))


def draw_log(lines: Iterable[str]) -> RenderableType:
    """Draw the latest lines, oldest first."""
    return Panel(Text("\n".join(lines)), title="what happened", title_align="left", border_style="dim")


def draw_progress(done: float, elapsed_s: float, coming: str) -> RenderableType:
    """Draw how far the scenario is (0 to 1) and what comes next."""
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(width=7, justify="right")
    grid.add_column(ratio=1)
    grid.add_column(justify="left", min_width=28)
    grid.add_row(f"{elapsed_s:.0f} s", ProgressBar(total=1.0, completed=done), f"next: {coming}")
    return grid


def _slots(board: Board) -> RenderableType:
    text = Text.assemble(("slots ", "bold"), (f"{board.slots.total}  ", "bold cyan"))
    for info in board.slots.executors.values():
        text.append_text(_executor(info, board.slots.slots_of(info)))
    return Panel(text, title=Text(f"{board.application} on Spark {board.spark_version}"), title_align="left")


def _executor(info: ExecutorInfo, slots: int) -> Text:
    note = " decommissioning" if info.decommissioning else " excluded" if info.excluded else ""
    style = "green" if slots else "yellow"
    return Text.assemble((f"{'■' * slots or '□'} ", style), f"executor {info.executor}", (note, style), "   ")


def _queries(queries: Collection[QueryBoard]) -> RenderableType:
    # Only some sources say how far behind a query is.
    lag = any(query.offsets_behind is not None for query in queries)
    table = Table(expand=True)
    for title in ("query", "state"):
        table.add_column(title)
    for title in ("partitions", "rows/s", "batch", *(["offsets behind"] if lag else []), "restarts"):
        table.add_column(title, justify="right")
    table.add_column("last decision", ratio=1)
    for query in queries:
        table.add_row(
            Text.assemble(query.name, (" stateful" if query.stateful else " stateless", "dim")),
            f"[{_STATES.get(query.state, 'white')}]{query.state}[/]",
            "–" if query.partitions is None else f"[bold cyan]{query.partitions}[/]",
            f"{query.rows_per_second:,.0f}",
            f"{query.batch_ms:,} ms",
            *([_behind(query)] if lag else []),
            str(query.restarts),
            Text(brief(query.decision.message) if query.decision else ""),
        )
    return table


def _behind(query: QueryBoard) -> str:
    """Say how far the partition that is furthest behind is behind."""
    return "–" if query.offsets_behind is None else f"{query.offsets_behind.max:,}"
