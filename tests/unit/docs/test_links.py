"""Tests that the links of all pages resolve, both on the MkDocs site and in the repository's own view."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import generated_docs
from spark_versions import supported
from tests.unit.docs.pages import CHECKOUT, GUIDE, PAGES, Page, read

_ELSEWHERE = ("https://", "http://", "mailto:")


def github_anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def mkdocs_anchor(heading: str) -> str:
    """Return the anchor of a heading, like Python-Markdown's slugify."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def anchors(page: Page) -> set[str]:
    return {github_anchor(heading) for heading in page.headings}


def broken(page: Page) -> list[str]:
    return [
        link for link in page.links if not link.startswith(_ELSEWHERE) and not leads_somewhere(page, link)
    ]


def leads_somewhere(page: Page, link: str) -> bool:
    path, _, anchor = link.partition("#")
    folder = CHECKOUT / os.path.dirname(page.path)
    target = (folder / path).resolve() if path else CHECKOUT / page.path
    if not target.is_file() or not target.is_relative_to(CHECKOUT):
        return False
    return not anchor or anchor in anchors(read(target.relative_to(CHECKOUT).as_posix()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_links_lead_somewhere(page: Page) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_an_anchor_is_the_same_everywhere(page: Page) -> None:
    assert [h for h in page.headings if github_anchor(h) != mkdocs_anchor(h)] == []
    if page.path != "CHANGELOG.md":
        assert len(anchors(page)) == len(page.headings)


@pytest.mark.parametrize(
    "link", ["docs/nowhere.md", "docs/limits.md#no-such-heading", "../README.md", "#nothing"]
)
def test_a_link_that_leads_nowhere_is_found(link: str) -> None:
    page = Page("README.md", f"# Title\n\n[x]({link}) and [y](docs/limits.md#streaming)\n")
    assert broken(page) == [link]


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.path)
def test_lines_can_be_read(page: Page) -> None:
    """Apart from tables, pictures and generated parts, lines have up to 110 characters, outside docs 100."""
    most = 110 if page.path.startswith("docs/") else 100
    by_hand = re.sub(r"(?s)<!-- (\S+) -->.*?<!-- /\1 -->", "", page.prose)
    lines = [line for line in by_hand.splitlines() if not line.lstrip().startswith(("|", "!["))]
    assert [line for line in lines if len(line) > most] == []


def test_the_table_of_versions_can_be_read_whatever_the_tests_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    *tested, last = supported()
    names = [*(row.name for row in tested), *(release for row in tested for release in row.others)]
    found = {name: {"passed": 1_000, "failed": 100} for name in names}
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "spark-versions.json").write_text(json.dumps(found))
    monkeypatch.setattr(generated_docs, "ROOT", tmp_path)
    table = generated_docs.versions_table()
    assert table.count("1000 core tests, 100 failed") == len(names) - 1  # the first version runs all tests
    (row,) = (line for line in table.splitlines() if "not yet" in line)
    assert row.startswith(f"| {last.minor} | {last.scala_binary} | ")
    assert [line for line in table.splitlines() if len(line) > 100] == []
