"""Python's garbage collector, which stops every thread of the process while it works.

The reference counts free nearly all objects. The collector has to find cycles alone, such as an exception and
its traceback, which are few. By default, it looks for them each time that 700 more objects exist, and in all
of them again and again: a decision about many queries is interrupted several times, and some of them for
longer than the decision takes.
"""

from __future__ import annotations

import gc

MORE_OBJECTS = 10_000
"""The collector looks at new objects each time that this number more exist: a few MB of garbage at most."""


def collect_rarely() -> None:
    """Let the collector work less often, and never look at what exists now, such as imported modules."""
    gc.freeze()
    gc.set_threshold(MORE_OBJECTS)
