"""The moment at which Ctrl-C can be sent to a Python that waits for its JVM."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def once_asleep(thread: int, then: Callable[[], object]) -> None:
    """Call `then` once `thread` reads the JVM's answer.

    Ctrl-C between a call and that read hangs PySpark, with or without the plugin: its handler sends a call of
    its own over the same connection, which the JVM reads after the first call has ended.
    """
    while sys._current_frames()[thread].f_code.co_name != "readinto":
        time.sleep(0.01)
    then()
