"""Requests for other bounds, through the HTTP application to a running loop."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path

from attrs import evolve

from spark_elastic.runtime.journal import Journal
from tests.unit.core.builder import STATEFUL
from tests.unit.http.world import ADAPTIVE, API, Reply, World, body, world
from tests.vectors.adapters.fields import Fields

JOB = "0" * 31 + "1"
OTHER = "0" * 31 + "2"
# The model's exceptions, and the corresponding error texts over HTTP.
ERRORS = {
    404: "FlinkJobNotFoundException",
    503: "UnavailableDispatcherOperationException",
    409: "UnsupportedOperationException",
}


def put(given: Fields) -> Fields:
    """Send the request of a vector, and return the result."""
    if given.get("second_update_while_first_pending"):
        return {"both_accepted": both_accepted(same_job=given["same_job"])}
    with world_of(given) as running:
        before = bounds(running)
        job = "f" * 32 if given.get("job") == "unknown" else JOB
        reply = running.put(path(job), content(given))
        return {
            "status": reply.status,
            "applied": bounds(running) != before,
            "error": ERRORS.get(reply.status),
        }


def world_of(given: Fields) -> AbstractContextManager[World]:
    full = Path("/dev/full") if given.get("store_throws") else None
    return world(
        {} if given.get("mode") == "REACTIVE" else ADAPTIVE,
        journal=lambda: Journal(full, max_size=1 << 20),
        queries=[evolve(STATEFUL, query=job) for job in (JOB, OTHER)],
        begun=given.get("job") != "initialising",
    )


def path(job: str) -> str:
    return f"{API}/jobs/{job}/resource-requirements"


def bounds(running: World) -> str:
    return running.get(path(JOB)).text


def content(given: Fields) -> object:
    """Return the body; the single vertex of a vector is the shuffle of a query."""
    if "body" in given:
        return given["body"].encode()
    pairs = given.get("requirements", {"v": [1, 32]}).values()
    return next((body(lower, upper) for lower, upper in pairs), {})


def both_accepted(*, same_job: bool) -> bool:
    """Send two updates while the loop waits, so that the second comes while the first is pending."""
    replies: list[Reply] = []
    with world_of({}) as running:
        running.shim.deaf = True
        jobs = [JOB, JOB if same_job else OTHER]
        writers = [
            threading.Thread(target=lambda job=job: replies.append(running.put(path(job), body(1, 32))))
            for job in jobs
        ]
        for writer in writers:
            writer.start()
        running.until_asked(2)
        running.shim.deaf = False
        running.shim.wake()
        for writer in writers:
            writer.join()
    return [reply.status for reply in replies] == [200, 200]
