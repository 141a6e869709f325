"""The finding of one of the checks of `spark-elastic doctor`."""

from __future__ import annotations

from typing import Literal

from attrs import frozen


@frozen
class Check:
    """The finding of one check, and the change to make if it is not ok."""

    check: str
    status: Literal["ok", "warn", "fail"]
    found: str
    change: str | None = None

    @classmethod
    def ok(cls, check: str, found: str) -> Check:
        """Report that the check passed."""
        return cls(check, "ok", found)

    @classmethod
    def warn(cls, check: str, found: str, change: str) -> Check:
        """Report something that works, but perhaps not as expected."""
        return cls(check, "warn", found, change)

    @classmethod
    def fail(cls, check: str, found: str, change: str) -> Check:
        """Report something that does not work."""
        return cls(check, "fail", found, change)
