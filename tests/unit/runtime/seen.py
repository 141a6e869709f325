"""Shows a run to a board, event by event, and compares the result with the whole scheduler."""

from __future__ import annotations

from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.board import Board
from spark_elastic.runtime.view import View
from spark_elastic.settings import load
from tests.unit.core.builder import Scene
from tests.unit.runtime.support import snapshot


def seen(scene: Scene) -> list[View]:
    """Return the board's view after each event of a scene. Raises AssertionError if a view is wrong."""
    board = Board()
    watched = board.scheduler(scene.settings)
    board.begin(load({}), snapshot())
    views = []
    for event, actions in scene.log:
        assert watched.handle(event) == actions
        board.publish()
        assert board.view is not None
        compare(board.view, watched.scheduler)
        views.append(board.view)
    return views


def compare(view: View, scheduler: Scheduler) -> None:
    whole = scheduler.queries
    assert list(view.queries) == list(whole)
    for query, shown in view.queries.items():
        assert shown == whole[query]
    assert view.slots == scheduler.slots.total
    assert view.executors == tuple(scheduler.slots.executors.values())
