"""Where documents of the API come from: a driver, or a journal."""

from __future__ import annotations

from typing import Any, Protocol

Json = dict[str, Any]


class Source(Protocol):
    """Answers as the API does."""

    def get(self, path: str) -> Json:
        """Return the document at `path`, below ``/elastic/api/v1``. Raises Failure."""
