"""Tests of the lint check of forbidden turns: each is found with its place, allowed text is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import words


@pytest.mark.parametrize(
    ("text", "line", "turn"),
    [
        ("One.\n\nThen Nobody asks.\n", 3, "Nobody"),
        ("It is\nto have a slot.\n", 1, "is to have"),
        ("It has so many partitions.", 1, "so many"),
        ("a\nb\nWhat it\nmakes of\nit.", 4, "makes of it"),
        ("    # A query is\n    # to have a slot.\n", 1, "is to have"),
        ("     * @return what is\n     * to be done\n", 1, "is to be"),
        ('\n    say(\n        "a query is "\n        f"to have {slots}"\n    )', 3, "is to have"),
    ],
)
def test_a_turn_is_found_at_the_line_it_begins_in(text: str, line: int, turn: str) -> None:
    ((found_at, found, instead),) = words.found(text)
    assert (found_at, found) == (line, turn)
    assert instead in words.TURNS.values()


def test_every_turn_in_a_text_is_found() -> None:
    assert sorted(turn for _, turn, _ in words.found("besides, somebody starts anew; besides")) == [
        "besides",
        "besides",
        "somebody",
        "starts anew",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "There are so many that the page shows the first ten.",
        "The user is able to have more.",
        "The tobesides of it.",
        "",
    ],
)
def test_a_turn_within_another_word_or_an_allowed_context_is_left(text: str) -> None:
    assert [*words.found(text)] == []


def test_a_generated_part_is_left_to_its_source() -> None:
    text = "<!-- settings -->\n| somebody |\n<!-- /settings -->\nNobody.\n<!-- open -->\nbesides\n"
    assert [(line, turn) for line, turn, _ in words.found(text)] == [(4, "Nobody"), (6, "besides")]


def test_main_names_file_line_and_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(words, "_CHECKOUT", tmp_path)
    bad, good = tmp_path / "bad.md", tmp_path / "good.md"
    bad.write_text("Plain.\nAs somebody says.\n")
    good.write_text("Plain.\n")
    monkeypatch.setattr("sys.argv", ["words.py", str(good), str(bad)])
    assert words.main() == 1
    assert capsys.readouterr().out == (
        "bad.md:2: 'somebody': say no one, the user, another process, or the passive\n"
    )
    monkeypatch.setattr("sys.argv", ["words.py", str(good)])
    assert words.main() == 0
    assert capsys.readouterr().out == ""


def test_the_check_covers_what_users_and_contributors_read_but_neither_tests_nor_itself() -> None:
    checked = {str(path.relative_to(words._CHECKOUT)) for path in words._tracked()}
    assert {
        "README.md",
        "docs/settings.md",
        "python/spark_elastic/settings.py",
        ".ci/generated_docs.py",
    } <= checked
    assert not [
        name for name in checked if name.startswith(("tests/", "integration/")) or name == ".ci/words.py"
    ]
