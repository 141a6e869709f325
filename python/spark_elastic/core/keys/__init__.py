"""The registry of settings: every key once, in a file per room.

A key's constant is called like the field of the settings that holds its value.
"""

from __future__ import annotations

from typing import Any

from spark_elastic.core.keys import batch, records, rescaling, resources, restarts
from spark_elastic.core.keys.key import Key

__all__ = ["KEYS"]

_ROOMS = (rescaling, restarts, resources, batch, records)

KEYS: tuple[Key[Any], ...] = tuple(
    value for room in _ROOMS for value in vars(room).values() if isinstance(value, Key)
)
"""All keys, in the order of the README's table."""
