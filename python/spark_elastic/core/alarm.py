"""The one timer of something that is not a query: what waits for a time sets it, and hears when it is due."""

from __future__ import annotations

from attrs import define

from spark_elastic.core.turn import Timer, Turn


@define
class Alarm:
    """`timer` is the one that is set, None: none is."""

    timer: Timer | None = None

    def keep(self, due: int | None, turn: Turn) -> None:
        """Have a timer set for `due` (epoch ms) at the latest; for None one that is set is in vain."""
        if due is None:
            return
        if self.timer is not None and due < self.timer.at:
            turn.cancel_timer(self.timer)
            self.timer = None
        if self.timer is None:
            self.timer = turn.set_timer(due)

    def rings(self, timer: str) -> bool:
        """Say whether the timer of this id is this one; then it is not set any more."""
        if self.timer is None or timer != self.timer.id:
            return False
        self.timer = None
        return True

    def lost(self) -> None:
        """Note that nobody has a timer set any more."""
        self.timer = None
