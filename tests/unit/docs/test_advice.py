"""Tests that the advice shown in README and docs is what the command prints."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from spark_elastic_tools.cli.main import cli
from tests.unit.docs.pages import CHECKOUT

_SHOWN = re.compile(r"```console\n\$ spark-elastic (advise tests/.*)\n((?:.*\n)*?)```")


@pytest.mark.long
@pytest.mark.parametrize("page", ["README.md", "docs/advise.md"])
def test_it_is_printed_in_that_order(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    (shown,) = _SHOWN.finditer((CHECKOUT / page).read_text(encoding="utf-8"))
    printed = iter(CliRunner().invoke(cli, shown[1].split()).stdout.splitlines())
    missing = [line for line in shown[2].splitlines() if line != "…" and line not in printed]
    assert missing == []
