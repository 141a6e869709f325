"""Faults of the policy process: it is gone, freezes, or sends nonsense."""

from __future__ import annotations

import random
import resource
from contextlib import suppress

import psutil

from integration.chaos.faults import Fault, Freezes, Missed
from integration.chaos.odd_policy import GARBAGE, LATE, NEVER, NONSENSE, ODD_ANSWERS, SLOW_JOURNAL
from integration.chaos.standalone import Standalone
from integration.chaos.world import World
from integration.streaming.waiting import eventually

# A process that is silent for ten seconds is replaced; a new one needs some seconds to start.
_REPLACED_S = 30.0
# It makes an exchange at least every few seconds, unless another fault prevents it.
_TAKEN_S = 10.0


class KillPolicy(Fault[World]):
    name = "policy_killed"
    needs_plugin = True
    loses_policy = True

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        for policy in world.policies():
            with suppress(psutil.NoSuchProcess):
                policy.kill()
            return f"process {policy.pid}"
        raise Missed("no policy process was there")


class FreezePolicy(Freezes[World]):
    """A freeze shorter than the silence of 10 s after which the process is replaced."""

    name = "policy_frozen"
    needs_plugin = True
    shortest, longest = 1.0, 7.0

    def choose(self, world: World, chance: random.Random) -> psutil.Process | None:
        return next(iter(world.policies()), None)


class HangPolicy(FreezePolicy):
    """A freeze longer than that silence: the process is replaced meanwhile."""

    name = "policy_hangs"
    loses_policy = True
    shortest, longest = 12.0, 30.0


class _Odd(Fault[Standalone]):
    """The policy process misbehaves, see odd_policy.py."""

    where = "standalone"
    needs_plugin = True

    def order(self, world: Standalone, kind: str, detail: str = "") -> str:
        """Make the current process misbehave. Raises Missed."""
        if not world.policies():
            raise Missed("no policy process was there")
        world.odd_policy.order(kind, detail)
        return f"{kind} {detail}".strip()

    def heal(self, world: Standalone) -> None:
        world.odd_policy.calm()


class _Replaced(_Odd):
    """The process is replaced because of its misbehaviour, and the next one is healthy."""

    loses_policy = True
    _policy: psutil.Process | None = None

    def order(self, world: Standalone, kind: str, detail: str = "") -> str:
        policy = next(iter(world.policies()), None)
        ordered = super().order(world, kind, detail)
        try:
            eventually(lambda: world.odd_policy.taken, "the policy process takes the order", _TAKEN_S)
        except AssertionError as error:
            world.odd_policy.calm()
            raise Missed(str(error)) from error
        self._policy = policy
        return ordered

    def heal(self, world: Standalone) -> None:
        """Do nothing: only a process that makes an exchange can be found to misbehave."""

    def outcome(self, world: Standalone) -> None:
        eventually(self._is_gone, "the odd policy process is replaced", _REPLACED_S)
        world.odd_policy.calm()

    def _is_gone(self) -> bool:
        with suppress(psutil.NoSuchProcess):
            return self._policy is None or self._policy.status() == psutil.STATUS_ZOMBIE
        return True


class TalkNonsense(_Replaced):
    """It sends something that is not an exchange."""

    name = "policy_garbage"

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        return self.order(world, GARBAGE, chance.choice(sorted(NONSENSE)))


class NeverAnswer(_Replaced):
    """Its loop makes no more exchanges; its other threads continue."""

    name = "policy_never"

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        return self.order(world, NEVER)


class AnswerLate(_Odd):
    """Its loop is late for each exchange, which is no reason to replace it."""

    name = "policy_late"
    shortest, longest = 1.0, 10.0

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        return self.order(world, LATE, f"{chance.uniform(0.1, 2.0):.2f}")


class AnswerOddly(_Odd):
    """Its answers to HTTP requests and to questions about batch stages make no sense."""

    name = "policy_odd_answers"
    shortest, longest = 1.0, 6.0

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        return self.order(world, ODD_ANSWERS)


class SlowJournal(_Odd):
    """Its journal is slow to reach the disk; no decisions are made meanwhile."""

    name = "journal_slow"
    shortest, longest = 1.0, 10.0

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        return self.order(world, SLOW_JOURNAL, f"{chance.uniform(0.1, 0.8):.2f}")


class FillJournal(Fault[Standalone]):
    """The journal can no longer be written, until another process starts a new one."""

    name = "journal_full"
    where = "standalone"
    needs_plugin = True
    loses_policy = True
    shortest, longest = 1.0, 3.0

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        self._policy = next(iter(world.policies()), None)
        if self._policy is None:
            raise Missed("no policy process was there")
        with suppress(psutil.NoSuchProcess):
            # Root can write into any folder, but not beyond the file size limit.
            self._policy.rlimit(psutil.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        return f"process {self._policy.pid}"

    def heal(self, world: Standalone) -> None:
        if self._policy is not None:
            with suppress(psutil.NoSuchProcess):
                self._policy.rlimit(psutil.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                self._policy.kill()
