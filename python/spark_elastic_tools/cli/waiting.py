"""Wait until a driver has done what was requested."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import get_args

import click

from spark_elastic.core.actions import StateFormat
from spark_elastic_tools.client import Busy, Driver, Json, NoDriver, Refused, title

# An application may end soon after its last query, and then its driver no longer answers.
_TICK_S = 0.1
_FAILURES = ("savepoint_failed", "savepoint_refused", "savepoint_nowhere")

timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait.",
)
format_option = click.option(
    "--format",
    type=click.Choice(get_args(StateFormat)),
    help="Store and checkpoint format of the state in it; hdfs is what plain Spark has.  [default: those of "
    "the query]",
)
wait_option = click.option("--wait/--no-wait", default=True, help="Wait until it is done.  [default: wait]")


class Savepointing:
    """A savepoint of a query, from just before the request to its end."""

    def __init__(self, driver: Driver, query: Json) -> None:
        self._driver = driver
        self._query = query
        self._path = f"/queries/{query['id']}/savepoints"
        self._before = {taken["path"] for taken in self._taken()}
        self._last = max((said["number"] for said in self._said(0)), default=0)

    def take(self, target: str | None, format_: str | None, *, stop: bool, timeout_s: float | None) -> Json:
        """Request the savepoint, by default in the folder from the settings; return it once it is complete.

        With `timeout_s` None this does not wait, and returns an empty object. Raises Failure if it is refused
        or fails, or takes longer.
        """
        wanted = {"target": target, "format": format_, "stop": stop}
        body = {name: value for name, value in wanted.items() if value is not None}
        self._driver.order(self._path, body)
        if timeout_s is None:
            return {}
        try:
            return until(self._look, timeout_s, f"the savepoint of {title(self._query)} is not complete")
        except NoDriver as gone:
            raise Refused(f"cannot tell any more whether the savepoint is complete: {gone}") from gone

    def _look(self) -> Json | None:
        # Decisions are read before savepoints: after a failure or the query's end, no new savepoint can
        # appear.
        said = list(self._said(self._last))
        for taken in self._taken():
            if taken["path"] not in self._before:
                return taken
        for decision in said:
            if decision["reason"] in _FAILURES or decision["kind"] == "finished":
                raise Refused(str(decision["message"]))
        return None

    def _taken(self) -> Iterable[Json]:
        found: list[Json] = self._driver.get(self._path)["savepoints"]
        return found

    def _said(self, after: int) -> Iterable[Json]:
        path = f"/decisions?query={self._query['id']}&after={after}&limit=1000"
        found: list[Json] = self._driver.get(path)["decisions"]
        return found


def until(look: Callable[[], Json | None], timeout_s: float, what: str) -> Json:
    """Poll `look` until it returns a value. Raises Failure, and after `timeout_s` Refused with `what`."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            found = look()
        except Busy:
            found = None  # the policy process is being replaced, or the machine is slow
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise Refused(f"{what} after {timeout_s:g} s; it continues: wait longer with --timeout")
        time.sleep(_TICK_S)
