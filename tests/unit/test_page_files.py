"""Tests of the rules for the page's files that need no browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FILES = Path(__file__).parents[2] / "jvm-shim/src/main/resources/org/apache/spark/elastic/ui"
SCRIPTS = sorted(FILES.glob("*.js"))
# Functions that turn text into markup or code; values from applications and users must stay text.
WAYS_IN = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "srcdoc",
    "new Function",
)


def test_the_servlet_gives_out_every_file() -> None:
    assert SCRIPTS
    assert all(re.fullmatch(r"[a-z]+\.(js|css)", file.name) for file in FILES.iterdir())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_takes_nothing_for_markup_and_nothing_from_elsewhere(script: Path) -> None:
    text = script.read_text()
    assert not [way for way in WAYS_IN if way in text]
    # SVG's namespace is only a name: nothing is fetched from it.
    assert set(re.findall(r"https?://[^\"]+", text)) <= {"http://www.w3.org/2000/svg"}
    for imported in re.findall(r'from "([^"]+)"', text):
        assert (FILES / imported).is_file(), imported
    assert max(map(len, text.splitlines())) <= 120
