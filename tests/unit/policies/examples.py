"""Custom policies for tests: some that work, and many kinds that do not."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping

from attrs import evolve, field, frozen

from spark_elastic.policies import Autoscale, ClusterView, QueryWish, Wish


def _each(view: ClusterView, slots: int, why: str) -> Wish:
    return Wish(queries={id: QueryWish(slots=slots, reason=why) for id in view.queries})


@frozen
class Steady:
    """Wants this many slots for each query."""

    slots: int = field(default=2, converter=int)

    def decide(self, view: ClusterView) -> Wish:
        return _each(view, self.slots, f"{self.slots} are always enough")


class Cautious:
    """Autoscale, but never below this many slots."""

    def decide(self, view: ClusterView) -> Wish:
        wish = Autoscale().decide(view)
        return Wish(queries={id: one for id, one in wish.queries.items() if one.slots >= 2})


class Raises:
    def decide(self, view: ClusterView) -> Wish:
        raise LookupError("no such\nmodel")


class Sleeps:
    def decide(self, view: ClusterView) -> Wish:
        time.sleep(3_600)
        return Wish()


class HoldsTheLock:
    """Never lets another thread of its process run."""

    def decide(self, view: ClusterView) -> Wish:
        re.match("(a+)+$", "a" * 64 + "b")
        return Wish()


class Exits:
    def decide(self, view: ClusterView) -> Wish:
        sys.exit(3)


class Leaves:
    def decide(self, view: ClusterView) -> Wish:
        os._exit(3)


class Crashes:
    def decide(self, view: ClusterView) -> Wish:
        os.kill(os.getpid(), 9)
        return Wish()


class Prints:
    """Prints and reads standard input, like code that was written for a terminal."""

    def decide(self, view: ClusterView) -> Wish:
        print("looking around", flush=True)
        assert sys.stdin.read() == ""
        return _each(view, 3, "it was printed")


class Forges:
    """Puts an answer of its own in place of the checked one."""

    def decide(self, view: ClusterView) -> Wish:
        from spark_elastic.runtime.custom import child

        wish = Wish(queries={"nobody": QueryWish(slots=1, reason="autoscale_up")})
        setattr(child, "ask", lambda *_: wish)  # noqa: B010
        raise LookupError("once")


class ChangesWhatItSees:
    def decide(self, view: ClusterView) -> Wish:
        queries = view.queries
        assert isinstance(queries, dict)
        queries.clear()
        return Wish()


@frozen
class Answers:
    """Returns whatever it is given."""

    given: object

    def decide(self, view: ClusterView) -> object:
        return self.given


class Counts:
    """Is not a pure function: it answers differently each time."""

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, view: ClusterView) -> Wish:
        self.asked += 1
        return _each(view, self.asked, "counting")


class Remembers:
    """Wants as many slots as the previously shown application had queries."""

    def __init__(self) -> None:
        self.before: ClusterView | None = None
        self.last: ClusterView | None = None

    def decide(self, view: ClusterView) -> Wish:
        if view != self.last:
            self.before, self.last = self.last, view
        return _each(view, 1 + (0 if self.before is None else len(self.before.queries)), "as before")


class AsksForThePast:
    def decide(self, view: ClusterView) -> Wish:
        wish = _each(view, 1, "soon")
        return Wish(queries={id: evolve(one, until=view.at) for id, one in wish.queries.items()})


class Slow:
    def decide(self, view: ClusterView) -> Wish:
        time.sleep(0.2)
        return Wish()


def cannot_be_made(**options: str) -> object:
    raise ValueError(f"no {', '.join(options)} here")


def refuses_its_address(**options: str) -> object:
    raise ValueError("nobody is at jdbc:postgresql://db/x?password=secret1")


def hangs_at_once() -> object:
    time.sleep(3_600)
    return Steady()


def has_no_decide() -> Mapping[str, str]:
    return {}
