"""The custom policies of one application: ask them, and keep their answers for the loop."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from spark_elastic.core.keys.policies import short
from spark_elastic.core.policies.policy import AskPolicy, PolicyAnswered
from spark_elastic.runtime.custom.protocol import LIMITS, Begin, Limits
from spark_elastic.settings import Settings

if TYPE_CHECKING:
    from spark_elastic.runtime.custom.worker import Worker

BEGIN_WAIT_S = 5.0
"""Seconds that an application's start waits for its policies; the driver gives up the process after 10 s."""


class Host:
    """Asks custom policies; `wake` wakes the loop when there is an answer.

    Only the loop calls this, in its thread. Only `problems` waits for a policy.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None, limits: Limits = LIMITS) -> None:
        self._wake = wake
        self._limits = limits
        self._options: Mapping[str, Mapping[str, str]] = {}
        self._workers: dict[str, Worker] = {}
        self._answers: deque[PolicyAnswered] = deque()

    def begin(self, settings: Settings) -> None:
        """Set the options of the policies."""
        self._options = settings.policy_options

    def problems(self, policies: tuple[str, ...], wait_s: float = BEGIN_WAIT_S) -> tuple[str, ...]:
        """Start these policies, and return why any is unusable, as far as that is known within `wait_s`."""
        workers = [self._worker(name) for name in policies]
        deadline = time.monotonic() + wait_s
        found = [worker.problem(max(0.0, deadline - time.monotonic())) for worker in workers]
        return tuple(problem for problem in found if problem is not None)

    def ask(self, question: AskPolicy) -> None:
        """Ask a policy; `take` returns an answer in any case."""
        self._worker(question.policy).ask(question)

    def take(self) -> Iterator[PolicyAnswered]:
        """Return the answers that have arrived, in order; the caller sets their ids and times."""
        while self._answers:
            yield self._answers.popleft()

    def close(self) -> None:
        """End all policies."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()

    def _worker(self, name: str) -> Worker:
        if name not in self._workers:
            # Imported only if needed, because importing subprocess takes a while.
            from spark_elastic.runtime.custom.worker import Worker

            begin = Begin(
                policy=name,
                options=self._options.get(short(name), {}),
                alive_s=self._limits.alive_s,
            )
            self._workers[name] = Worker(begin, self._deliver, self._limits)
        return self._workers[name]

    def _deliver(self, answer: PolicyAnswered) -> None:
        self._answers.append(answer)
        self._wake()
