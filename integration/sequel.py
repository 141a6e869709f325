"""Tests of a module that build on each other: after a failure, the rest would only time out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


class Sequel:
    """The failed test of a module."""

    def __init__(self) -> None:
        self.failed: str | None = None


@pytest.fixture(scope="module")
def sequel() -> Sequel:
    return Sequel()


@pytest.fixture(autouse=True)
def in_sequence(request: pytest.FixtureRequest, sequel: Sequel) -> Iterator[None]:
    """Skip the tests that follow a failure in the same module."""
    if sequel.failed is not None:
        pytest.skip(f"{sequel.failed} has failed")
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        sequel.failed = request.node.name
