"""Where a live view shows itself: a live view in a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from spark_elastic.live.draw import draw_log, draw_progress, draw_snapshot, shown
from spark_elastic.live.look import Snapshot
from spark_elastic.live.narrate import Narrator

if TYPE_CHECKING:
    from typing_extensions import Self

LOG_LINES = 10


class Stage:
    """Shows an application live; a context manager that gives the terminal back at its end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._narrator = Narrator()
        self._log: deque[str] = deque(maxlen=LOG_LINES)
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
        """Tell one line: at once where lines are printed, in the live view otherwise."""
        stamped = f"{time.monotonic() - self._began:6.1f} s  {line}"
        self._log.append(stamped)
        if self._live is None:
            self._console.print(Text(stamped), soft_wrap=True)

    def show(self, snapshot: Snapshot, done: float | None = None, coming: str = "") -> None:
        """Show a snapshot; with `done` (0 to 1) also how far the scenario is, and what comes next."""
        for line in self._narrator.lines(snapshot):
            self.say(shown(line))
        if self._live is None:
            return
        parts = [draw_snapshot(snapshot), draw_log(self._log)]
        if done is not None:
            parts.append(draw_progress(done, time.monotonic() - self._began, coming))
        self._live.update(Group(*parts), refresh=True)
