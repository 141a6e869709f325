"""One YARN with one node for all tests here."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from integration.browser.conftest import browser as browser
from integration.sequel import in_sequence as in_sequence
from integration.sequel import sequel as sequel
from integration.yarn.hadoop import Yarn


@pytest.fixture(scope="package")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    if sys.platform != "linux":
        pytest.skip("only Linux has more than one address on loopback, and the proxy needs its own")
    with Yarn(tmp_path_factory.mktemp("yarn") / "yarn") as running:
        running.add_node()
        yield running
    assert running.left_over() == []
