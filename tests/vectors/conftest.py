"""`--vectors DIR` runs the vector files of another folder than the project's own copy."""

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
    """Say whether the vectors are those of our own copy."""
    return bool(pytestconfig.getoption("--vectors", default=OWN).resolve() == OWN)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each vector, and one of each group that nothing runs yet."""
    # The option is not known where another folder's tests are run as well.
    folder = metafunc.config.getoption("--vectors", default=OWN)
    files = sorted(folder.glob("*.json"))
    if "vector" in metafunc.fixturenames:
        cases = [case for file in files for case in vectors_of(file)]
        metafunc.parametrize(("group", "vector"), cases, ids=[case[1]["id"] for case in cases])
    elif "group_without_adapter" in metafunc.fixturenames:
        groups = [name for file in files if (name := read(file)["group"]) not in ADAPTERS]
        metafunc.parametrize("group_without_adapter", groups)


def read(file: Path) -> dict[str, Any]:
    value = json.loads(file.read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


def vectors_of(file: Path) -> list[tuple[str, dict[str, Any]]]:
    value = read(file)
    return [(value["group"], vector) for vector in value["vectors"] if value["group"] in ADAPTERS]
