"""Detects a batch that cannot be processed: it fails in the same way each time it is tried."""

from __future__ import annotations

import re

from attrs import define

from spark_elastic.core.events import Failure

MOST_TRIES = 3
"""With this many failures of the same kind at the same offsets in a row, the batch is to blame."""

IO_PATIENCE_MS = 600_000
"""For this long after the first failure, an IOException may be due to unavailable storage, not broken data.

The shim tries an unreachable checkpoint for at least as long (`Boundary.patienceMs`).
"""

# Text that differs between failures of one kind: UUIDs, object identities, hashes; ids, ports, times.
_CHANGING = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|@[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b|\d+",
    re.IGNORECASE,
)

# A service did not answer, or could not be reached: it may later, and the batch is not to blame. In Java the
# classes of the causes show that, in Python the lines that end each part of its traceback.
_OUTAGES = frozenset(
    f"java.net.{name}"
    for name in (
        "ConnectException",
        "NoRouteToHostException",
        "SocketTimeoutException",
        "UnknownHostException",
    )
)

_PYTHON_OUTAGE = re.compile(
    r"^(?:\w+\.)*(?:"
    r"Connection(?:Refused|Reset|Aborted)?Error|BrokenPipeError|TimeoutError|gaierror"  # Python's own
    # Those of urllib3, requests, httpx and botocore.
    r"|(?:Endpoint|New)ConnectionError|(?:Connect|Read)Timeout(?:Error)?"
    r")\b",
    re.MULTILINE,
)

# Spark's driver itself reads and writes only the checkpoint, lists of files and logs of sinks: if that fails,
# storage is to blame. A failure of a task or of a function of the application has one of these above it.
_OF_OTHERS = frozenset(
    {
        "org.apache.spark.SparkException",
        "org.apache.spark.sql.execution.streaming.sources.ForeachBatchUserFuncException",
        "py4j.Py4JException",
    }
)
# With this condition tasks report that they could not write state to the checkpoint's storage.
_NO_STATE_WRITTEN = "CANNOT_WRITE_STATE_STORE"

_Kind = tuple[tuple[str, ...], str, str]


@define(kw_only=True)
class PoisonWatch:
    """Counts consecutive failures of a query with the same kind and offsets; `since` is epoch ms."""

    last: _Kind | None = None
    times: int = 0
    since: int = 0

    def note(self, failure: Failure, at: int) -> bool:
        """Record a failure reported at `at` (epoch ms), and return whether its batch is poison.

        Before the first batch is planned there is none to blame, and no batch is to blame for an outage.
        """
        kind = (failure.causes, _CHANGING.sub("#", failure.error), failure.offsets)
        if kind != self.last:
            self.last, self.times, self.since = kind, 0, at
        self.times += 1
        patience_ms = IO_PATIENCE_MS if failure.of_io else 0
        return (
            self.times >= MOST_TRIES
            and at - self.since >= patience_ms
            and is_planned(failure.offsets)
            and not _is_outage(failure)
        )

    def progressed(self) -> None:
        """Forget everything: a batch was committed."""
        self.last = None
        self.times = 0

    def validate(self) -> None:
        """Check that there is a failure if and only if one was counted. Raises AssertionError."""
        assert self.times >= 0
        assert (self.times == 0) == (self.last is None)


def _is_outage(failure: Failure) -> bool:
    return (
        not _OUTAGES.isdisjoint(failure.causes)
        or _PYTHON_OUTAGE.search(failure.error) is not None
        or _is_of_storage(failure)
    )


def _is_of_storage(failure: Failure) -> bool:
    return (
        (failure.of_io and _OF_OTHERS.isdisjoint(failure.causes))
        or (failure.error_class or "").startswith(_NO_STATE_WRITTEN)
        or f"[{_NO_STATE_WRITTEN}" in failure.error
    )


def is_planned(offsets: str) -> bool:
    """Return whether a micro-batch was planned: whether any source has an offset to read up to.

    Spark writes - for a source without one, possibly after its name.
    """
    sources = offsets.strip("[]{}").split(", ")
    return any(source and source != "-" and not source.endswith(": -") for source in sources)
