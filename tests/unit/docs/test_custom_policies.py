"""Tests that the policies in docs/custom-policies.md are typed, are policies, and run in the simulator."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from mypy import api as mypy

from spark_elastic.policies.conformance import check
from spark_elastic.policies.loading import make
from spark_elastic.settings import load
from spark_elastic_tools.cli.main import cli
from tests.unit.docs.pages import CHECKOUT, read
from tests.unit.docs.shell import commands

pytestmark = pytest.mark.long

PAGE = read("docs/custom-policies.md")
LATE_NIGHT, MODEL, CONFORMANCE = (block.text for block in PAGE.blocks if block.language == "python")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the package of the page to the current folder."""
    folder = tmp_path / "my_package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "scaling.py").write_text(LATE_NIGHT)
    (folder / "model.py").write_text(MODEL)
    (folder / "test_scaling.py").write_text(CONFORMANCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_package"]:
        del sys.modules[name]


def test_the_examples_are_typed(package: Path) -> None:
    config = CHECKOUT / "pyproject.toml"
    cache = CHECKOUT / ".mypy_cache"
    found, errors, code = mypy.run([
        "--strict", "--config-file", str(config), "--cache-dir", str(cache), "--explicit-package-bases",
        *map(str, sorted(package.glob("*.py"))),
    ])  # fmt: skip
    assert code == 0, found + errors


def test_the_example_is_about_twenty_lines() -> None:
    assert len(LATE_NIGHT.splitlines()) <= 25


def test_the_examples_are_policies(package: Path) -> None:
    late_night = make("my_package.scaling:LateNight", {"slots": "2", "zone": "Europe/Berlin"})
    check(late_night, views=50, longest_s=5.0)
    for rows in ("1000", "1"):  # the wish may be any number: the limits behind the policy cap it
        check(make("my_package.model:RowsPerSlot", {"rows": rows}), views=50, longest_s=5.0)


def test_the_test_that_is_shown_passes(package: Path) -> None:
    shown: ModuleType = importlib.import_module("my_package.test_scaling")
    shown.test_late_night_is_a_policy()


def test_the_settings_that_are_shown_make_the_policy(package: Path) -> None:
    (block,) = (block for block in PAGE.blocks if block.language == "properties")
    settings = load(dict(line.split() for line in block.text.splitlines()))
    (name,) = settings.custom_policies
    policy = make(name, settings.policy_options["LateNight"])
    assert (policy.slots, str(policy.zone)) == (2, "Europe/Berlin")  # type: ignore[attr-defined]


def test_the_simulation_that_is_shown_runs(package: Path) -> None:
    (command,) = (
        command
        for block in PAGE.blocks
        if block.language == "shell"
        for command in commands(block)
        if "simulate" in command
    )
    result = CliRunner().invoke(cli, [*command[1:], "--hours", "0.5"])
    assert result.exit_code == 0, result.output
    assert "my_package.scaling:LateNight" in result.output
