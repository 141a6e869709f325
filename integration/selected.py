"""The parameters of the selected tests, for fixtures that prepare only what these need."""

from __future__ import annotations

import pytest


def selected(request: pytest.FixtureRequest, name: str) -> set[str]:
    """Return the values of a parameter, as text, in the selected tests of this module."""
    return {
        str(item.callspec.params[name])
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.module is request.node.getparent(pytest.Module).obj
        and hasattr(item, "callspec")
        and name in item.callspec.params
    }
