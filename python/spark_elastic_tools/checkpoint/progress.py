"""Show on standard error how far Spark's tasks are, while jobs run in this thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOOK_S = 0.25
# Without a terminal, a line is written this often (s).
_LINE_S = 10.0


@contextmanager
def progress(context: SparkContext, what: str, steps: Sequence[str] = ()) -> Iterator[None]:
    """Say every now and then how many tasks of the running stage have finished.

    `what` is the verb, such as "reading"; `steps` names the jobs in their order. On a terminal that is one
    line, which is removed at the end.
    """
    shown = Shown(sys.stderr)
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(context, what, steps, shown, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        shown.clear()


class Shown:
    """What is shown of a text that changes: on a terminal its newest form, elsewhere a line now and then."""

    def __init__(self, out: TextIO, line_s: float = _LINE_S) -> None:
        self._out = out
        self._line_s = line_s
        self._terminal = out.isatty()
        self._width = 0
        self._waited_s = 0.0

    def show(self, text: str, passed_s: float) -> None:
        """Show a text, `passed_s` seconds after the last one."""
        if self._terminal:
            self._out.write(f"\r{text:{self._width}}")
            self._width = len(text)
            self._out.flush()
            return
        self._waited_s += passed_s
        if self._waited_s >= self._line_s:
            self._waited_s = 0.0
            self._out.write(f"{text}\n")
            self._out.flush()

    def clear(self) -> None:
        """Leave a terminal's line empty."""
        if self._terminal and self._width:
            self._out.write(f"\r{'':{self._width}}\r")
            self._out.flush()


def _watch(
    context: SparkContext, what: str, steps: Sequence[str], shown: Shown, done: threading.Event
) -> None:
    # Spark's answers are for display only: whatever fails here fails in the jobs' own thread, too.
    with suppress(Exception):
        tracker = context.statusTracker()
        before = set(tracker.getJobIdsForGroup(None))
        while not done.wait(_LOOK_S):
            stages = tracker.getActiveStageIds()
            info = tracker.getStageInfo(max(stages)) if stages else None
            if info is None:
                continue
            jobs = len(set(tracker.getJobIdsForGroup(None)) - before)
            step = f" {steps[min(jobs, len(steps)) - 1]}" if steps and jobs else ""
            shown.show(f"{what}{step}: {info.numCompletedTasks} of {info.numTasks} tasks", _LOOK_S)
