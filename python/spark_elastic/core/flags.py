"""Spark's own settings that are on or off."""

from __future__ import annotations

from collections.abc import Mapping


def is_on(conf: Mapping[str, str], key: str) -> bool:
    """Read such a setting as Spark does, whatever its case; it is off by default."""
    return conf.get(key, "false").strip().lower() == "true"
