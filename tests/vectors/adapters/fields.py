"""The input and output of an adapter."""

from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]


class NotRunError(Exception):
    """Raised for a vector of a kind that production never meets; the message says why."""
