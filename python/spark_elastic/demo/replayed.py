"""Whether the journal of the run leads to the same decisions once more."""

from __future__ import annotations

from pathlib import Path

from spark_elastic.core.scheduler import Scheduler
from spark_elastic.demo.check import Check
from spark_elastic.runtime.entries import Unreadable, read_journal
from spark_elastic.runtime.replay import replay

_NAME = "the journal can be replayed"


def check_replay(journal: Path) -> Check:
    """Check that the journal, played from its beginning, comes to every decision again."""
    try:
        result = replay(read_journal(journal), Scheduler)
    except Unreadable as error:
        return Check(name=_NAME, ok=False, found=str(error))
    if result.difference is not None:
        return Check(name=_NAME, ok=False, found=f"different at {result.difference.place}")
    return Check(
        name=_NAME,
        ok=result.actions > 0 and result.left_out == 0,
        found=f"{result.events:,} events, {result.actions:,} actions, {result.left_out:,} left out",
    )
