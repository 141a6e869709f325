"""The policy without a wish: declared bounds alone say what a query has."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.policies.wish import Wish


@frozen
class Declared:
    """Wants nothing."""

    def decide(self, view: ClusterView) -> Wish:
        """Return no wish."""
        return Wish()
