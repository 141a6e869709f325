"""Tests that the page of a release on a package index has links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from package_page import Page

CHECKOUT = Path(__file__).parents[3]
REPOSITORY = "https://github.example/owner/name"
VARIABLE = "SPARK_ELASTIC_REPOSITORY"


def metadata() -> dict[str, Any]:
    found: dict[str, Any] = {"version": "1.2.3"}
    Page(str(CHECKOUT), {}).update(found)
    return found


def test_links_lead_to_the_files_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, REPOSITORY + "/")
    found = metadata()
    text = found["readme"]["text"]
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    files = []
    for link in links:
        assert link.startswith("https://")
        if link.startswith(f"{REPOSITORY}/"):
            kind, tag, path = link.removeprefix(f"{REPOSITORY}/").split("/", 2)
            assert kind in ("blob", "raw")
            assert tag == "v1.2.3"
            files.append((kind, path.partition("#")[0]))
    assert all((CHECKOUT / path).is_file() for _, path in files)
    assert {Path(path).suffix for kind, path in files if kind == "raw"} == {".svg"}
    assert found["urls"]["Source"] == REPOSITORY
    assert found["urls"]["Documentation"] == f"{REPOSITORY}/blob/v1.2.3/docs/index.md"
    assert all((CHECKOUT / path).is_file() for path in ("docs/index.md", "CHANGELOG.md"))


def test_without_a_repository_it_is_the_readme_of_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    found = metadata()
    assert found["readme"]["text"] == (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert "urls" not in found


@pytest.mark.parametrize("address", ["owner/name", "http://github.example/owner/name", "https://x/y"])
def test_what_is_no_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, address)
    with pytest.raises(SystemExit, match="type the address of the repository"):
        metadata()
