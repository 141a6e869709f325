"""Tests that every command in README and docs exists, is typed correctly, and is run by a test."""

from __future__ import annotations

import re

import click
import pytest

from spark_elastic_tools.cli.main import cli
from tests.unit.docs.known import KNOWN, RunBy
from tests.unit.docs.pages import CHECKOUT, GUIDE, Block
from tests.unit.docs.shell import Command, commands, parsed

SHOWN = [
    pytest.param(block, command, id=f"{block} {' '.join(command)[:40]}")
    for page in GUIDE
    for block in page.blocks
    if block.language in ("shell", "console")
    for command in commands(block)
]
INLINE = sorted(
    {
        (page.path, code)
        for page in GUIDE
        for code in page.inline
        if code.startswith(("spark-elastic ", "make ")) and "…" not in code
    }
)
LANGUAGES = {"shell", "console", "text", "properties", "yaml", "json", "python"}


def how(command: Command) -> str | None:
    return next((known for known in KNOWN if re.fullmatch(known, " ".join(command), re.DOTALL)), None)


def targets() -> set[str]:
    return set(re.findall(r"(?m)^([a-z-]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8")))


def variables() -> set[str]:
    return set(re.findall(r"\(([A-Z]+)\)", (CHECKOUT / "Makefile").read_text(encoding="utf-8")))


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that examples name do not exist here."""
    monkeypatch.setattr(click.Path, "convert", lambda self, value, param, ctx: value)


def take(words: Command) -> None:
    """Parse a command as click does before it runs it. Raises ClickException."""
    context = click.Context(cli, info_name="spark-elastic")
    group: click.Command = cli
    rest = list(words[1:])
    while isinstance(group, click.Group):
        name, *rest = rest
        found = group.get_command(context, name)
        if found is None:
            raise click.UsageError(f"there is no command {name}")
        context, group = found.make_context(name, list(rest), parent=context), found


def test_blocks_of_code_say_what_they_are() -> None:
    wrong = [str(block) for page in GUIDE for block in page.blocks if block.language not in LANGUAGES]
    assert wrong == []


@pytest.mark.parametrize(("block", "command"), SHOWN)
def test_a_command_is_run_by_a_test_or_says_why_not(block: Block, command: Command) -> None:
    known = how(command)
    assert known is not None, f"{block} shows '{' '.join(command)}': add it to tests/unit/docs/known.py"
    by = KNOWN[known]
    if isinstance(by, RunBy):
        assert by.words in (CHECKOUT / by.file).read_text(encoding="utf-8"), f"{by.file} has no {by.words}"


def test_nothing_is_known_that_is_not_shown() -> None:
    shown = {how(command) for page in GUIDE for block in page.blocks for command in _of(block)}
    assert set(KNOWN) - shown == set()


def _of(block: Block) -> list[Command]:
    return list(commands(block)) if block.language in ("shell", "console") else []


@pytest.mark.parametrize(("block", "command"), SHOWN)
def test_a_command_takes_what_is_typed(block: Block, command: Command) -> None:
    if command[0] == "spark-elastic":
        take(command)
    elif command[0] == "make":
        assert command[1] in targets(), str(block)
        assert {word.partition("=")[0] for word in command[2:]} <= variables(), str(block)


@pytest.mark.parametrize(("page", "code"), INLINE)
def test_a_command_in_a_sentence_exists_with_its_options(page: str, code: str) -> None:
    (command, *_) = parsed(code)
    if command[0] == "make":
        assert command[1] in targets(), page
        assert {word.partition("=")[0] for word in command[2:]} <= variables(), page
        return
    group = click.Context(cli, info_name="spark-elastic")
    found = cli.get_command(group, command[1])
    assert found is not None, page
    if isinstance(found, click.Group) and len(command) > 2:
        found = found.get_command(group, command[2])
        assert found is not None, page
    there = {name for param in found.params for name in (*param.opts, *param.secondary_opts)}
    typed = {word.partition("=")[0] for word in command if word.startswith("--")}
    assert typed <= there, page


@pytest.mark.parametrize(
    "words",
    [
        ("spark-elastic", "statu"),
        ("spark-elastic", "status", "--ulr", "http://localhost:4040"),
        ("spark-elastic", "rescale", "--up"),
        ("spark-elastic", "conf", "--mode", "elastic"),
        ("spark-elastic", "jar", "4.2.0"),
    ],
)
def test_what_cannot_be_typed_is_found(words: Command) -> None:
    with pytest.raises(click.UsageError):
        take(words)


def test_a_line_of_shell_is_taken_apart() -> None:
    line = (
        "A=1 spark-submit $(spark-elastic conf --mode reactive) app.py >> out.txt | jq '.a | .b'; export B=2"
    )
    assert list(parsed(line)) == [
        ("spark-elastic", "conf", "--mode", "reactive"),
        ("spark-submit", "SUBSTITUTED", "app.py"),
        ("jq", ".a | .b"),
    ]
