"""What every policy is."""

from __future__ import annotations

from typing import Protocol

from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.policies.wish import Wish


class Policy(Protocol):
    """Decides what the queries of an application should have.

    It is a pure function: the same view gives the same wish, and nothing is kept between two of them. What it
    has to remember is in the view: what was wanted, granted and applied before. Limits stand behind it
    (`limits.py`), so it need not keep to any.
    """

    def decide(self, view: ClusterView) -> Wish:
        """Return what is wanted now."""
        ...
