"""The registry of settings: every key once, in a file per subject.

A key's constant has the name of the settings field that holds its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_elastic.core.keys import application, batch, flink, policies, queries, rescaling
from spark_elastic.core.keys.key import Key, camel

__all__ = ["KEYS", "NAMES", "OF_QUERY", "PER_QUERY", "called", "called_for_query"]

_SUBJECTS = (rescaling, policies, application, batch)

KEYS: tuple[Key[Any], ...] = tuple(
    value for subject in _SUBJECTS for value in vars(subject).values() if isinstance(value, Key)
)
"""All keys of the application, in the order of the table."""

PER_QUERY: Mapping[str, Key[Any]] = {key.name: key for key in KEYS if key.per_query is not None}
"""The application's keys that can have a value of their own for each query, by name."""

OF_QUERY: Mapping[str, Key[Any]] = {
    value.name: value for value in vars(queries).values() if isinstance(value, Key)
}
"""The keys that only a query can have, by name."""

NAMES: Mapping[str, Key[Any]] = {
    **{name: key for key in KEYS for name in (key.name, *key.aliases)},
    **{camel(name): key for name, key in flink.NAMES.items()},
}
"""Every accepted name, in camel case and without the prefix, including Flink's full names."""


def called(name: str) -> Key[Any] | None:
    """Return the key of this name, in any spelling but without the prefix."""
    return NAMES.get(camel(name))


def called_for_query(name: str) -> Key[Any] | None:
    """Return the key that this name has among the settings of a query, in any spelling."""
    return OF_QUERY.get(camel(name)) or called(name)
