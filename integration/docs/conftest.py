"""A user's machine for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.docs.machine import Machine, set_up


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Set up a machine on which the plugin is not configured yet."""
    return set_up(tmp_path)
