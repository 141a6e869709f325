"""Tests of how progress is shown."""

from __future__ import annotations

import io

from spark_elastic_tools.checkpoint.progress import Shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_changes_and_is_removed() -> None:
    out = Terminal()
    shown = Shown(out)
    shown.show("12 of 200 tasks", 0.2)
    shown.show("done", 0.2)
    shown.clear()
    assert out.getvalue() == f"\r12 of 200 tasks\rdone{' ' * 11}\r{' ' * 4}\r"


def test_elsewhere_a_line_is_written_now_and_then() -> None:
    out = io.StringIO()
    shown = Shown(out, line_s=1)
    for i in range(10):
        shown.show(f"{i} of 10 tasks", 0.25)
    shown.clear()
    assert out.getvalue() == "3 of 10 tasks\n7 of 10 tasks\n"
