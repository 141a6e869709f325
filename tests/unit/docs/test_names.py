"""Tests that every name in README and docs exists in the code: settings, metrics, reasons, REST paths."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from spark_elastic.core.keys import NAMES, PER_QUERY, called
from spark_elastic.core.keys.flink import OPTIONS
from spark_elastic.core.keys.key import PREFIX
from spark_elastic.core.reasons.batch import STAGE_REASONS
from spark_elastic.core.reasons.catalogue import REASONS
from spark_elastic.http.openapi import document
from tests.unit.docs.pages import GUIDE, Page, read

_SETTING = re.compile(r"(?<!apache\.)spark\.elastic\.[A-Za-z0-9.*?…-]*[A-Za-z0-9*…]")
_QUERY = re.compile(r"query\.[A-Za-z0-9*?-]+\.(.+)")
_OF_A_QUERY = {
    "lowerBound",
    "upperBound",
    "target",
    "priority",
    "weight",
    "slotSharingGroup",
    "savepoint",
    "KEY",
}
_ROOMS = {name.partition(".")[0] for name in NAMES if "." in name}
_SHORT = re.compile(rf"(?:{'|'.join(sorted(_ROOMS))})\.[A-Za-z0-9.*…-]+|query\.[A-Za-z0-9*?-]+\.\S+")
_METRIC = re.compile(r"spark_elastic_(?!lab\b|tools\b)[a-z_]+[a-z]")
_PATH = re.compile(r"(?:/elastic/api/v1|\$API|(?:GET|PUT|POST|DELETE) )(/[^\s`'\"|,)?…]*)")
_CODE = re.compile(r"(?m)\[([a-z_]+)\]$")
# Flink's options that are no settings of ours; the page about them says so.
_FLINKS = {name for option in OPTIONS if option.key is None for name in (option.name, *option.older)}


def is_setting(name: str) -> bool:
    """Return whether this is a key without its prefix, or with … or * at its end a prefix of keys."""
    if name == "…":
        return True
    if re.fullmatch(r".*[.](…|\*)", name) and not name.startswith("policy."):
        start = name[:-1]
        return start == "query." or any(key.startswith(start) for key in NAMES)
    own = _QUERY.fullmatch(name)
    if own is not None:
        end = re.sub(r"^source-\d+\.", "", own[1])
        return end in _OF_A_QUERY or end in PER_QUERY
    return called(name) is not None or re.fullmatch(r"policy\.[A-Za-z][\w-]*\.(\w+|\*)", name) is not None


def full_names(page: Page) -> set[str]:
    return {name.removeprefix(PREFIX) for name in _SETTING.findall(page.text)}


def short_names(page: Page) -> set[str]:
    """Return inline code without the prefix that looks like a setting."""
    first = (code.partition(" ")[0].partition("=")[0] for code in page.inline)
    return {name for name in first if _SHORT.fullmatch(name)} - _FLINKS


def paths(text: str) -> Iterator[str]:
    for path in _PATH.findall(text):
        found = path.removeprefix("/elastic/api/v1").rstrip("/.;:")
        if found and not found.startswith(("/elastic", "/api")):
            yield found


def exists(path: str) -> bool:
    """Return whether the API has a path, parts of which may be ids or variables."""
    for known in document()["paths"]:
        pattern = re.sub(r"\\\{\w+\\\}", r"(\\{\\w+\\}|\\$\\w+|:\\w+|[0-9a-f-]{32,36})", re.escape(known))
        if re.fullmatch(pattern, path):
            return True
    return False


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.path)
def test_settings_exist(page: Page) -> None:
    assert [name for name in sorted(full_names(page) | short_names(page)) if not is_setting(name)] == []


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.path)
def test_rest_paths_exist(page: Page) -> None:
    assert [path for path in paths(page.text) if not exists(path)] == []


def test_metrics_exist() -> None:
    listed = set(
        _METRIC.findall(
            read("docs/operations.md").prose.partition("<!-- metrics -->")[2].partition("<!-- /")[0]
        )
    )
    assert len(listed) > 20
    named = {name for page in GUIDE for name in _METRIC.findall(page.text) if "prometheus" not in name}
    assert {name for name in named if name not in listed} == set()


def test_reasons_exist() -> None:
    named = {code for page in GUIDE for code in _CODE.findall(page.text)}
    assert len(named) > 3
    assert named - set(REASONS) - set(STAGE_REASONS) == set()


@pytest.mark.parametrize("name", ["schedulerMod", "autoscale.load2", "query.counts.lower", "nothing.*"])
def test_what_is_no_setting_is_found(name: str) -> None:
    assert not is_setting(name)


@pytest.mark.parametrize(
    "name",
    ["scheduler-mode", "query.orders-*.restartStrategy.type", "query.a.source-0.upperBound", "autoscale.*"],
)
def test_spellings_and_patterns_are_settings(name: str) -> None:
    assert is_setting(name)


def test_what_is_no_path_is_found() -> None:
    assert list(paths("`GET /query/{query}` and $API/queries/$QUERY/stops")) == [
        "/query/{query}",
        "/queries/$QUERY/stops",
    ]
    assert not exists("/query/{query}")
    assert not exists("/queries/$QUERY/stops")
    assert exists("/queries/a9162e8d-b20e-44f7-a78c-5f726b8acdf2/rescales")
