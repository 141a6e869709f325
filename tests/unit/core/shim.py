"""A stand-in for the shim that carries out orders at once, until none is left."""

from __future__ import annotations

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from tests.unit.core.builder import Scene

_MOST_ROUNDS = 50
_BATCH_MS = 300
_ORDERS = (
    "StartQuery",
    "Rescale",
    "PrepareMove",
    "FailQuery",
    "CancelQuery",
    "TakeSavepoint",
    "RequestExecutors",
    "DecommissionExecutors",
    "KillExecutors",
)


def settle(scene: Scene, wait_ms: int = 120_000) -> None:
    """Carry out orders, commit micro-batches and let `wait_ms` pass, until no order follows."""
    end = scene.now + wait_ms
    for _ in range(_MOST_ROUNDS):
        while order := _open_order(scene):
            carry_out(scene, order)
        for query, view in scene.scheduler.queries.items():
            if view.state == "Executing" and view.partitions is not None:
                scene.now += _BATCH_MS
                scene.batch(_BATCH_MS, view.partitions, query)
        if _open_order(scene) is None:
            due = min((timer.at for timer in scene.timers.values()), default=None)
            if due is None or due > end:
                return
            scene.advance(max(0, due - scene.now))
    raise AssertionError("it does not come to rest")


def running(scene: Scene, query: str = "counts") -> int | None:
    """Return the partitions in force, None if the query does not run."""
    view = scene.query(query)
    return view.partitions if view.state == "Executing" else None


def _open_order(scene: Scene) -> ac.Action | None:
    for kind in _ORDERS:
        order = scene.last_order(kind)
        if order is not None:
            return order
    return None


def _stands_at_a_failure(scene: Scene, query: str) -> bool:
    told = [event for event, _ in scene.log if isinstance(event, ev.QueryFailed | ev.QueryStarted)]
    return isinstance([event for event in told if event.query == query][-1], ev.QueryFailed)


def carry_out(scene: Scene, order: ac.Action) -> None:
    """Carry out an order and report its outcome."""
    match order:
        case ac.StartQuery(query=query, partitions=partitions):
            view = scene.query(query)
            count = partitions or view.partitions or view.facts.session_partitions
            scene.done(order, took_ms=100)
            scene.send(ev.QueryStarted, query=query, run=view.run, partitions=count)
        case ac.Rescale() | ac.PrepareMove():
            scene.done(order, took_ms=100)
        case ac.FailQuery(query=query, message=message):
            scene.done(order, took_ms=0)
            scene.terminated(query, message or "the exception of its run")
        case ac.CancelQuery(query=query):
            scene.done(order, took_ms=0)
            scene.terminated(query)
        case ac.TakeSavepoint(query=query, target=target, stop=stop):
            taken = {"query": query, "run": scene.query(query).run, "batch": 7, "bytes": 1_000}
            scene.send(ev.SavepointTaken, action=order.id, path=f"{target}/savepoint-7", **taken)
            scene.done(order, took_ms=100)
            if stop and not _stands_at_a_failure(scene, query):
                scene.terminated(query)
        case ac.DecommissionExecutors(executors=executors) | ac.KillExecutors(executors=executors):
            scene.done(order, took_ms=0)
            for executor in executors:
                scene.lose(executor)
        case _:
            # A request is only acknowledged: there is no cluster here that could grant it.
            scene.done(order, took_ms=0)
