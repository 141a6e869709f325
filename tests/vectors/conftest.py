"""The option `--vectors DIR`, which runs the vector files of another folder than the project's own copy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.vectors.adapters import ADAPTERS

OWN = Path(__file__).parent / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--vectors", type=Path, default=OWN, help="folder of vector files (default: our copy)")


@pytest.fixture
def own(pytestconfig: pytest.Config) -> bool:
    """Return whether the vectors are those of our own copy."""
    return bool(pytestconfig.getoption("--vectors", default=OWN).resolve() == OWN)


@pytest.fixture
def groups(pytestconfig: pytest.Config) -> set[str]:
    """Return the groups of all vectors."""
    return {read(file)["group"] for file in pytestconfig.getoption("--vectors", default=OWN).glob("*.json")}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each vector."""
    # The option is unknown when tests of another folder are run together with these.
    folder = metafunc.config.getoption("--vectors", default=OWN)
    files = sorted(folder.glob("*.json"))
    if "vector" in metafunc.fixturenames:
        cases = [case for file in files for case in vectors_of(file)]
        metafunc.parametrize(("group", "vector"), cases, ids=[case[1]["id"] for case in cases])


def read(file: Path) -> dict[str, Any]:
    value = json.loads(file.read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


def vectors_of(file: Path) -> list[tuple[str, dict[str, Any]]]:
    value = read(file)
    return [(value["group"], vector) for vector in value["vectors"] if value["group"] in ADAPTERS]
