"""Where the demonstration shows itself: a live picture in a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from spark_elastic.demo.board import Board
from spark_elastic.demo.narrate import Narrator
from spark_elastic.demo.view import draw_board, draw_log, draw_progress

if TYPE_CHECKING:
    from typing_extensions import Self

_LOG_LINES = 10


class Stage:
    """Shows a board and what happens to it; a context manager that gives the terminal back at its end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._narrator = Narrator()
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._began = time.monotonic()
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, line: str) -> None:
        """Tell one line: at once where lines are printed, in the picture otherwise."""
        stamped = f"{time.monotonic() - self._began:6.1f} s  {line}"
        self._log.append(stamped)
        if self._live is None:
            self._console.print(Text(stamped), soft_wrap=True)

    def show(self, board: Board, done: float | None = None, coming: str = "") -> None:
        """Show the board; with `done` (0 to 1) also how far the scenario is, and what comes next."""
        for line in self._narrator.lines(board):
            self.say(line)
        if self._live is None:
            return
        parts = [draw_board(board), draw_log(self._log)]
        if done is not None:
            parts.append(draw_progress(done, time.monotonic() - self._began, coming))
        self._live.update(Group(*parts), refresh=True)
