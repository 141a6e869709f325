"""Fixtures that turn every scene into a test of all invariants and of the replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import Scene


@pytest.fixture
def stage() -> Iterator[Callable[..., Scene]]:
    """Make scenes with settings other than the defaults."""
    scenes: list[Scene] = []

    def make(**settings: Any) -> Scene:
        scenes.append(Scene(CoreSettings(**settings)))
        return scenes[-1]

    yield make
    for scene in scenes:
        scene.check()


@pytest.fixture
def scene(stage: Callable[..., Scene]) -> Scene:
    """Make a scene with default settings."""
    return stage()
