"""One browser for all tests here; without one they are skipped with advice on what to install."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from integration.browser.chromium import NAMES, chromium, find_chromium
from integration.cluster.conftest import jvm as jvm
from integration.cluster.conftest import master as master
from integration.sequel import in_sequence as in_sequence
from integration.sequel import sequel as sequel


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = find_chromium()
    if executable is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on PATH (Debian: apt-get install chromium)")
    with chromium(executable) as started:
        yield started
