"""A JVM that can start no more threads, as on a machine at its limit of threads or memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JJavaError

# The stack size that such a JVM needs: there is no room for a thread while there is room for everything else.
LARGE_STACKS = "-Xss512m"
_ROOM = 256 << 20


@contextmanager
def no_thread_more(jvm: Any) -> Iterator[Callable[[], None]]:
    """Make every attempt to create a thread in a JVM with `LARGE_STACKS` (Py4J's view of it) fail.

    Yields a function that fills the room that ended threads have left since.
    """
    process = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())
    kept = process.rlimit(psutil.RLIMIT_AS)
    timers: list[Any] = []

    def take_all() -> None:
        while True:
            timers.append(jvm.java.util.Timer(True))  # creates a daemon thread and nothing else

    def fill() -> None:
        with pytest.raises(Py4JJavaError, match="unable to create native thread"):
            take_all()

    process.rlimit(psutil.RLIMIT_AS, (process.memory_info().vms + _ROOM, kept[1]))
    try:
        fill()
        yield fill
    finally:
        process.rlimit(psutil.RLIMIT_AS, kept)
        for timer in timers:
            timer.cancel()
