"""What every policy is."""

from __future__ import annotations

from typing import Protocol

from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.policies.wish import Wish


class Policy(Protocol):
    """Decides what the queries of an application should have.

    It is a pure function: the same view gives the same wish, and nothing is kept between two of them. What it
    has to remember is in the view: what was wanted, granted and applied before.

    A wish has numbers of slots, limits for them, or both. Policies form a chain (`chain.py`): each sees the
    view with the limits that those before it have stated, and of several that want a number of slots for a
    query the last one decides. Limits stand behind each (`limits.py`), so it need not keep to any: neither a
    number nor a limit goes beyond what is declared for a query or stated before, and what goes further is
    granted as far as it may be, with the reason.
    """

    def decide(self, view: ClusterView) -> Wish:
        """Return what is wanted now."""
        ...
