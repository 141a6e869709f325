"""Show on standard error how far Spark's tasks are, while a job runs in this thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOOK_S = 0.25
# Without a terminal, a line is written this often (s).
_LINE_S = 10.0
_OURS = "spark-elastic: "


@contextmanager
def progress(context: SparkContext, what: str, out: TextIO | None = None) -> Iterator[None]:
    """Say every now and then how many tasks have finished; `what` is the verb, such as "reading".

    On a terminal that is one line, which is removed at the end.
    """
    shown = Shown(out or sys.stderr)
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(context, what, shown, done), daemon=True)
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


def _watch(context: SparkContext, what: str, shown: Shown, done: threading.Event) -> None:
    # Spark's answers are for display only: whatever fails here fails in the job's own thread, too.
    with suppress(Exception):
        while not done.wait(_LOOK_S):
            for text in _running(context):
                shown.show(f"{what} {text}", _LOOK_S)


def _running(context: SparkContext) -> Iterator[str]:
    """Yield the newest running stage, such as "operator 0, default: 12 of 200 tasks"."""
    tracker = context.statusTracker()
    stages = sorted(tracker.getActiveStageIds())
    if not stages:
        return
    info = tracker.getStageInfo(stages[-1])
    if info is None:
        return
    label = next(
        (name for job in tracker.getActiveJobsIds() if (name := _description(context, job))), info.name
    )
    yield f"{label}: {info.numCompletedTasks} of {info.numTasks} tasks"


def _description(context: SparkContext, job: int) -> str | None:
    described = context._jsc.sc().statusStore().job(job).description()
    return str(described.get()).removeprefix(_OURS) if described.isDefined() else None
