"""What goes into an adapter and comes out of it."""

from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]


class NotRunError(Exception):
    """A vector is of a kind that nothing in production is asked for; the message says why."""
