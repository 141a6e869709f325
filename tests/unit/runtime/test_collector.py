"""Tests that the garbage collector of the policy process works rarely, and still works."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from spark_elastic.runtime.collector import MORE_OBJECTS, collect_rarely


class Cycle:
    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Leave the collector as it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_what_exists_is_not_looked_at_again() -> None:
    collect_rarely()
    assert gc.get_freeze_count() > MORE_OBJECTS, "the imported modules alone"


def test_cycles_are_still_found() -> None:
    collect_rarely()
    first = weakref.ref(Cycle())
    assert first() is not None, "no object is looked for at once"
    assert any(Cycle() and first() is None for _ in range(3 * MORE_OBJECTS))
