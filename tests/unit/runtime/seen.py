"""Publish a run, event by event, and hold what is published against the whole of the scheduler."""

from __future__ import annotations

from spark_elastic.core.query_view import wanted_slots
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.publisher import Publisher, View
from spark_elastic.settings import load
from tests.unit.core.builder import Scene
from tests.unit.runtime.support import snapshot


def seen(scene: Scene) -> list[View]:
    """Return the view after each event of a scene. Raises AssertionError if a view is wrong."""
    publisher = Publisher()
    watched = publisher.scheduler(scene.settings)
    publisher.begin(load({}), snapshot())
    views = []
    for event, actions in scene.log:
        assert watched.handle(event) == actions
        publisher.publish()
        assert publisher.view is not None
        compare(publisher.view, watched.scheduler)
        views.append(publisher.view)
    return views


def compare(view: View, scheduler: Scheduler) -> None:
    whole = scheduler.queries
    assert list(view.queries) == list(whole)
    for query, shown in view.queries.items():
        assert shown == whole[query]
    assert view.slots == scheduler.slots.total
    assert view.wanted == wanted_slots(whole.values(), scheduler.settings.max_parallelism)
    assert view.executors == tuple(scheduler.slots.executors.values())
