from __future__ import annotations

from io import StringIO

from rich.console import Console

from spark_elastic.core.events import OffsetsBehind
from spark_elastic.demo.board import Board
from spark_elastic.demo.view import draw_board
from tests.unit.demo.facts import progress, snapshot, submitted


def drawn(board: Board) -> str:
    console = Console(file=StringIO(), width=160)
    console.print(draw_board(board))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def board_of(*behind: OffsetsBehind | None) -> Board:
    board = Board()
    board.follow(snapshot())
    for number, offsets in enumerate(behind):
        board.follow(submitted(f"query-{number}"))
        board.follow(progress(f"query-{number}", 0, 100, 2, behind=offsets))
    return board


def test_a_query_says_how_far_its_furthest_partition_is_behind() -> None:
    shown = drawn(board_of(OffsetsBehind(avg=1700.5, max=2345, min=1056), None))
    assert "offsets behind" in shown
    (knowing,) = [line for line in shown.splitlines() if "query-0" in line]
    (other,) = [line for line in shown.splitlines() if "query-1" in line]
    assert "2,345" in knowing
    assert "–" in other


def test_where_no_source_says_it_there_is_no_column_for_it() -> None:
    assert "offsets behind" not in drawn(board_of(None, None))
