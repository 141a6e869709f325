"""Fixtures that all tests without Spark share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

# A deadline per example would fail on a busy machine.
settings.register_profile("any_machine", deadline=None)
settings.load_profile("any_machine")


@pytest.fixture(autouse=True, scope="session")
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep journals without a configured path in a folder that pytest cleans up."""
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_DIRS", str(folder))
        yield folder


@pytest.fixture
def started_since() -> Callable[[], list[psutil.Process]]:
    """Return a function that lists the living processes started since the test began."""
    there = set(psutil.Process().children())

    def since() -> list[psutil.Process]:
        children = set(psutil.Process().children()) - there
        return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]

    return since
