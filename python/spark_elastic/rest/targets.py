"""Where a savepoint may be written to: it becomes a write with the driver's credentials.

The settings name the folders, and who asks may choose below them. A refusal says which those are, and nothing
of what is at the place that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from spark_elastic.core.keys.application import SAVEPOINT_DIR, SAVEPOINT_PREFIXES
from spark_elastic.core.keys.key import Place
from spark_elastic.rest.errors import Refusal
from spark_elastic.settings import Settings

__all__ = ["permitted"]


def permitted(target: str, settings: Settings) -> tuple[str, str]:
    """Return the folder that was asked for, and the one that allows it. Raises Refusal (400)."""
    folder, allowed = settings[SAVEPOINT_DIR], tuple(_allowed(settings))
    if folder is not None and target == folder:
        return folder, folder  # whatever its name has in it: nobody but the settings has chosen it
    try:
        place = Place.parse(target)
    except ValueError as error:
        raise Refusal(400, f"target is no folder that can be written to, {error}: {_say(allowed)}") from None
    if folder is not None and [place] == list(_places([folder])):
        return folder, folder  # as the settings spell it: there older ones may be removed
    for prefix in allowed:
        if place.is_within(prefix):
            return str(place), str(prefix)
    raise Refusal(400, f"target is not below a folder that savepoints may be written to: {_say(allowed)}")


def _allowed(settings: Settings) -> Iterator[Place]:
    return _places((settings[SAVEPOINT_DIR] or "", *settings[SAVEPOINT_PREFIXES]))


def _places(texts: Iterable[str]) -> Iterator[Place]:
    for text in texts:
        # The folder of the settings may be one that is relative, and so none to compare with.
        with suppress(ValueError):
            yield Place.parse(text)


def _say(allowed: tuple[Place, ...]) -> str:
    places = " and ".join(map(str, allowed)) or "nothing, since no such folder is set"
    return f"allowed is what is below {places} ({SAVEPOINT_DIR.full_name}, {SAVEPOINT_PREFIXES.full_name})"
