"""The times at which a change of resources may lead to a rescale.

Three durations control it: the *cooldown* after the last start, the *stabilization* in which resources may
settle, and the *maximum delay* between a change and its evaluation. There are two inputs: a *change* (slots,
bounds or load are different) and a *trigger* (a good moment: a micro-batch was committed). The output is one
bit: make the transition now.

    Cooldown --> Idling --> Stabilizing --> Stabilized --> Transitioning
       |                        ^   |            |              ^
       +------------------------+   +------------|--------------+
                    Idling <---------------------+

- Stabilization and maximum delay count from the first sufficient change, not from the last one and not from
  the end of the cooldown; a duration that has passed by then ends at once.
- While stabilizing, only *desired* resources (all that could be used) lead to a transition: at a trigger, or
  at the latest the maximum delay after a change. Once stabilized, *sufficient* ones do.
- Boundaries are inclusive. A change that did not suffice during the cooldown is judged again at its end.
"""

from __future__ import annotations

from typing import Literal, Protocol

from attrs import define

Phase = Literal["Cooldown", "Idling", "Stabilizing", "Stabilized", "Transitioning"]


class Resources(Protocol):
    """The manager's questions about the world, asked again each time."""

    def sufficient(self) -> bool:
        """Return whether a rescale would be possible and useful."""
        ...

    def desired(self) -> bool:
        """Return whether it is sufficient, and more slots could not be used."""
        ...


@define(kw_only=True)
class TransitionManager:
    """The phases between two starts of a query. All times are epoch ms, all durations ms and at least 0."""

    created: int
    cooldown_ms: int
    stabilization_ms: int
    max_delay_ms: int
    phase: Phase = "Cooldown"
    first_change: int | None = None
    judge_again: bool = False
    check_at: int | None = None

    @property
    def cooldown_end(self) -> int:
        """The moment from which a rescale may start."""
        return self.created + self.cooldown_ms

    @property
    def due(self) -> int | None:
        """The next moment of a change without an event, None if only an event can bring one."""
        match self.phase:
            case "Idling" | "Transitioning":  # first: a query is Idling most of its life
                return None
            case "Cooldown":
                return self.cooldown_end
            case "Stabilizing":
                end = self._counted_from_first_change(self.stabilization_ms)
                return end if self.check_at is None else min(end, self.check_at)
            case "Stabilized":
                return self._counted_from_first_change(self.max_delay_ms)

    @property
    def waits_until(self) -> int | None:
        """The end of the present phase, None if it has none."""
        if self.phase == "Stabilizing":
            return self._counted_from_first_change(self.stabilization_ms)
        return self.due

    def change(self, at: int, resources: Resources) -> bool:
        """Record that the world is different; return True if the transition should be made now."""
        if self.advance(at, resources):
            return True
        match self.phase:
            case "Cooldown":
                if self.first_change is None:
                    if resources.sufficient():
                        self.first_change = at
                    else:
                        self.judge_again = True
            case "Idling":
                if resources.sufficient():
                    self._stabilize(at)
            case "Stabilizing":
                if self.check_at is None:
                    self.check_at = at + self.max_delay_ms
            case "Stabilized" | "Transitioning":
                pass
        return self.advance(at, resources)

    def trigger(self, at: int, resources: Resources) -> bool:
        """Use a good moment; return True if the transition should be made now."""
        if self.advance(at, resources):
            return True
        match self.phase:
            case "Stabilizing":
                return resources.desired() and self._transition()
            case "Stabilized":
                return self._evaluate(resources)
            case "Cooldown" | "Idling" | "Transitioning":
                return False

    def advance(self, at: int, resources: Resources) -> bool:
        """Do everything due at `at`, in order; return True if the transition should be made now."""
        while (due := self.due) is not None and due <= at:
            match self.phase:
                case "Cooldown":
                    self._end_cooldown(resources)
                case "Stabilizing" if self.check_at == due:
                    self.check_at = None
                    if resources.desired():
                        return self._transition()
                case "Stabilizing":
                    self.phase = "Stabilized"
                    self.check_at = None
                case _:
                    return self._evaluate(resources)
        return False

    def retime(self, other: TransitionManager) -> None:
        """Take over the durations of another manager; running waits count from when they began."""
        self.cooldown_ms = other.cooldown_ms
        self.stabilization_ms = other.stabilization_ms
        self.max_delay_ms = other.max_delay_ms

    def withdraw(self) -> None:
        """Give up a transition that could not be made yet, and is no longer wanted."""
        assert self.phase == "Transitioning"
        self.phase = "Idling"
        self.first_change = None

    def _counted_from_first_change(self, duration_ms: int) -> int:
        assert self.first_change is not None
        return self.first_change + duration_ms

    def _end_cooldown(self, resources: Resources) -> None:
        if self.first_change is not None:
            self._stabilize(self.first_change)
        elif self.judge_again and resources.sufficient():
            self._stabilize(self.cooldown_end)
        else:
            self.phase = "Idling"
        self.judge_again = False

    def _stabilize(self, first_change: int) -> None:
        self.phase = "Stabilizing"
        self.first_change = first_change
        self.check_at = first_change + self.max_delay_ms

    def _evaluate(self, resources: Resources) -> bool:
        if resources.sufficient():
            return self._transition()
        self.phase = "Idling"
        self.first_change = None
        return False

    def _transition(self) -> bool:
        self.phase = "Transitioning"
        self.check_at = None
        return True

    def validate(self) -> None:
        """Check that each phase has what it needs and no more. Raises AssertionError."""
        assert min(self.cooldown_ms, self.stabilization_ms, self.max_delay_ms) >= 0
        assert self.check_at is None or self.phase == "Stabilizing"
        assert not self.judge_again or self.phase == "Cooldown"
        if self.phase in ("Stabilizing", "Stabilized"):
            assert self.first_change is not None
        if self.phase == "Idling":
            assert self.first_change is None
