"""Tests of loading a custom policy's class: by its module, or by an entry point of an installed package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spark_elastic.policies.loading import UnusablePolicy, make
from tests.unit.policies.examples import Steady

EXAMPLES = "tests.unit.policies.examples"


def error_of(name: str, **options: str) -> str:
    with pytest.raises(UnusablePolicy) as caught:
        make(name, options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with entry points for two policies, one of which does not exist."""
    folder = tmp_path / "night_shift-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: night-shift\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        f"[spark_elastic.policies]\nlate-night = {EXAMPLES}:Steady\ngone = {EXAMPLES}:Gone\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])


def test_a_class_is_made_with_its_options_as_text() -> None:
    assert make(f"{EXAMPLES}:Steady", {"slots": "5"}) == Steady(5)


def test_an_entry_point_is_found(installed: None) -> None:
    assert make("late-night", {"slots": "5"}) == Steady(5)


def test_one_that_cannot_be_imported_says_where_it_has_to_be() -> None:
    assert error_of("no_such_package.scaling:LateNight") == (
        "the policy no_such_package.scaling:LateNight cannot be imported: ModuleNotFoundError: No module "
        "named 'no_such_package': install its package where the policy process runs, with the Python of "
        "spark.elastic.python"
    )
    assert "has no attribute 'Nothing'" in error_of(f"{EXAMPLES}:Nothing")


def test_what_its_constructor_refuses_is_said_with_the_setting() -> None:
    assert error_of(f"{EXAMPLES}:Steady", slots="many").endswith(
        "set spark.elastic.policy.Steady.OPTION as its constructor wants it"
    )
    assert "invalid literal for int() with base 10: 'many'" in error_of(f"{EXAMPLES}:Steady", slots="many")
    assert "unexpected keyword argument 'colour'" in error_of(f"{EXAMPLES}:Steady", colour="red")


def test_what_is_no_policy_is_refused() -> None:
    assert "is a dict: give it a method decide(view)" in error_of(f"{EXAMPLES}:has_no_decide")
    assert "is a str: name a class with a method decide(view)" in error_of("sys:byteorder")


def test_a_name_that_nobody_knows_shows_those_that_there_are(installed: None) -> None:
    said = error_of("late-nihgt")
    assert said.startswith("there is no policy late-nihgt, allowed are declared, ")
    assert said.endswith("late-night, gone, or package.module:Class: set late-night")
    assert "install the package whose entry point of spark_elastic.policies it is" in error_of("zzz")
    assert error_of("gone").startswith(
        f"the policy gone ({EXAMPLES}:Gone) cannot be imported: AttributeError"
    )
