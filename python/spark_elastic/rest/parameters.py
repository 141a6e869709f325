"""Parameters of a request that choose a part of a list."""

from __future__ import annotations

import falcon

from spark_elastic.rest.errors import Refusal

LARGEST = 2**31 - 1
"""The largest number of anything that is counted."""

LATEST = 2**53 - 1
"""The latest time (epoch ms) that every client can write down."""


def whole(request: falcon.Request, name: str, default: int, least: int, most: int) -> int:
    """Return a parameter that is a whole number. Raises Refusal (400)."""
    text = request.get_param(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 16 and least <= int(text) <= most:
        return int(text)
    raise Refusal(
        400,
        f"{name} is '{text[:60]}', allowed is a whole number from {least} to {most}: write {name}={default}",
    )


def limit(request: falcon.Request, default: int, most: int) -> int:
    """Return how many there are to be at most. Raises Refusal (400)."""
    return whole(request, "limit", default, 1, most)


def before(request: falcon.Request) -> int:
    """Return the number below which those are that are wanted. Raises Refusal (400)."""
    return whole(request, "before", LARGEST, 0, LARGEST)
