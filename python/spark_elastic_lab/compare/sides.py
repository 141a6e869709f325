"""The two sides of a comparison: what each adds to the command, and their order in each round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from spark_elastic.core.keys.application import POLICY_FILE
from spark_elastic.core.keys.key import Key
from spark_elastic.core.keys.rescaling import MODE
from spark_elastic.settings import load, spellings
from spark_elastic.spark_conf import ConflictError, has_plugin, plugin_conf

Side = Literal["plain", "elastic"]
SIDES: tuple[Side, Side] = ("plain", "elastic")
_OFF = "off"
_MODE_OF_A_QUERY = re.compile(rf"spark\.elastic\.query\..+\.{MODE.name}")


def order(number: int) -> tuple[Side, Side]:
    """Return the order of a round, from 1 on: what the first leaves in caches helps the second."""
    return SIDES if number % 2 else (SIDES[1], SIDES[0])


def rounds(count: int) -> Iterator[tuple[int, Side]]:
    """Yield the number of the round and the side of each run, in their order."""
    for number in range(1, count + 1):
        for side in order(number):
            yield number, side


def plain_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Return what turns off a plugin that `conf` turns on; nothing if it does not."""
    if not has_plugin(conf):
        return {}
    of_queries = {name: _OFF for name in conf if _MODE_OF_A_QUERY.fullmatch(name)}
    return {_name(conf, MODE): _OFF, **of_queries}


def elastic_settings(
    conf: Mapping[str, str], *, jar: Path, python: str, mode: str | None, policy_file: Path | None
) -> dict[str, str]:
    """Return what `spark-elastic conf` prints for these settings, and the policy file.

    Raises ConflictError if they cannot be combined with `conf`, or if that turns the plugin off.
    """
    settings = plugin_conf(conf, jar=jar, python=python, mode=mode)
    if policy_file is not None:
        settings[_name(conf, POLICY_FILE)] = str(policy_file.absolute())
    if load({**conf, **settings})[MODE] == _OFF:
        raise ConflictError(
            f"{_name(conf, MODE)} is 'off', so both sides would be plain Spark: remove it, or type "
            "--mode reactive"
        )
    return settings


def _name(conf: Mapping[str, str], key: Key[Any]) -> str:
    """Return the name under which `conf` sets a key, since a second spelling would conflict with it."""
    return next(iter(spellings(conf, key)), key.full_name)
