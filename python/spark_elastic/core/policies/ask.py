"""How a custom policy is asked: by an action, and its answer is an event.

So the code of others runs neither in the core nor in the thread of the loop, and what it has said is in the
journal: who reads that needs none of it.
"""

from __future__ import annotations

from attrs import field, frozen

from spark_elastic.core.actions import Action
from spark_elastic.core.events import Event
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.policies.wish import Wish


@frozen(kw_only=True)
class AskPolicy(Action):
    """Ask the custom policy of this name what it wants.

    The `view` follows from the events before it, so it is not written down: one that was read has None.
    """

    policy: str
    view: ClusterView | None = field(default=None, eq=False, repr=False)


@frozen(kw_only=True)
class PolicyAnswered(Event):
    """What a custom policy wants that was asked with the action of the id `asked`.

    `error` says in one line why there is no answer that could be used, None: there is one. `took_ms` is how
    long it was waited for.
    """

    policy: str
    asked: str
    wish: Wish | None = None
    error: str | None = None
    took_ms: int = 0
