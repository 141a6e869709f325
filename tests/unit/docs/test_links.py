"""Links of all pages lead somewhere, on the site that MkDocs builds and where files are shown as they are."""

from __future__ import annotations

import os
import re

import pytest

from tests.unit.docs.pages import CHECKOUT, GUIDE, PAGES, Page, read

_ELSEWHERE = ("https://", "http://", "mailto:")


def github_anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def mkdocs_anchor(heading: str) -> str:
    """Do what Python-Markdown's slugify does."""
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
    """Tables, pictures and generated parts aside, lines are short: outside of docs up to 100 characters."""
    most = 110 if page.path.startswith("docs/") else 100
    by_hand = re.sub(r"(?s)<!-- (\S+) -->.*?<!-- /\1 -->", "", page.prose)
    by_hand = re.sub(r"(?s)## Compatibility\n.*?(?=\n## )", "", by_hand)  # says what was tested, at length
    lines = [line for line in by_hand.splitlines() if not line.lstrip().startswith(("|", "!["))]
    assert [line for line in lines if len(line) > most] == []
