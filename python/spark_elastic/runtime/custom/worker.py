"""The worker of one custom policy: a thread that talks to the policy's process, and kills it if it hangs.

A thread alone would not do: it cannot be ended, and one that holds Python's lock (a regular expression, a
loop in C) stops the policy loop with it. A process costs 25 MB and half a second.
"""

from __future__ import annotations

import logging
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from attrs import evolve, field, frozen

from spark_elastic.core.policies.policy import AskPolicy, PolicyAnswered
from spark_elastic.core.reasons.reason import duration
from spark_elastic.policies.answers import BadAnswer, checked
from spark_elastic.redaction import redacted
from spark_elastic.runtime.custom import protocol
from spark_elastic.runtime.custom.pipe import OutOfTime, Pipe, PipeClosed

# The child gets this process's module path as it is now, so that both can import the same modules.
_BOOTSTRAP = "import sys; sys.path[:] = {path!r}; from spark_elastic.runtime.custom.child import main; main()"
_END_S = 2.0
_log = logging.getLogger(__name__)

T = TypeVar("T")


class NoAnswer(Exception):
    """There is no answer; the text says why."""


@frozen
class Running:
    """The process of a policy, and the pipes to it."""

    process: subprocess.Popen[bytes]
    pipe: Pipe = field(init=False)

    @pipe.default
    def _pipe(self) -> Pipe:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return Pipe(self.process.stdout.fileno(), self.process.stdin.fileno())

    def end(self) -> None:
        """Kill the process, whatever it is doing."""
        self.process.kill()
        for end in (self.process.stdin, self.process.stdout):
            assert end is not None
            with suppress(OSError):
                end.close()
        with suppress(subprocess.TimeoutExpired):  # a process that cannot be killed is abandoned
            self.process.wait(_END_S)


class Worker:
    """Asks the policy that `begin` names; `deliver` is called with each answer, in the worker's thread.

    One question is asked at a time; of those that arrive meanwhile, only the last one counts. A process that
    has ended or was killed is replaced at the next question. There is never more than one.
    """

    def __init__(
        self, begin: protocol.Begin, deliver: Callable[[PolicyAnswered], None], limits: protocol.Limits
    ) -> None:
        self._begin = begin
        self._deliver = deliver
        self._limits = limits
        self._asked: queue.SimpleQueue[AskPolicy | None] = queue.SimpleQueue()
        self._running: Running | None = None
        self._ready = threading.Event()
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._work, name=f"policy-{begin.policy}", daemon=True)
        self._thread.start()

    def problem(self, timeout_s: float) -> str | None:
        """Wait for the start of the first process; return why it failed, None if it runs or still starts."""
        return self._problem if self._ready.wait(timeout_s) else None

    def ask(self, question: AskPolicy) -> None:
        """Ask the policy; an answer is delivered in any case."""
        self._asked.put(question)

    def close(self) -> None:
        """End the process and this worker."""
        self._asked.put(None)
        running = self._running
        if running is not None:
            running.process.kill()  # the thread notices, and cleans up
        self._thread.join(_END_S)

    def _work(self) -> None:
        try:
            self._running = self._begun()
        except Exception as error:  # whatever it was, the next question tries again
            self._problem = redacted(str(error))
            self._end()
        finally:
            self._ready.set()
        while (question := self._next()) is not None:
            began = time.monotonic()
            try:
                answer = self._answer(question)
            except NoAnswer as error:
                answer = self._failed(str(error))
            except Exception as error:  # whatever it is, the loop waits for an answer
                _log.exception("asking the policy %s failed", self._begin.policy)
                answer = self._failed(f"{type(error).__name__}: {error}")
            took_ms = round((time.monotonic() - began) * 1_000)
            try:
                self._deliver(evolve(answer, policy=question.policy, asked=question.id, took_ms=took_ms))
            except Exception:  # the next question must still be answered
                _log.exception("delivering an answer of the policy %s failed", self._begin.policy)
        self._end()

    def _next(self) -> AskPolicy | None:
        question = self._asked.get()
        while question is not None and not self._asked.empty():
            question = self._asked.get()
        return question

    def _failed(self, error: str) -> PolicyAnswered:
        return PolicyAnswered(id="", at=0, policy="", asked="", error=redacted(error))

    def _answer(self, question: AskPolicy) -> PolicyAnswered:
        if self._running is None:
            self._running = self._begun()
        answer = self._exchanged(
            self._running,
            question.view,
            protocol.decode,
            self._limits.answer_s,
            late=lambda limit: f"it has not answered within {limit}, and its process was ended",
            who="its process",
        )
        return self._checked(answer, question)

    def _checked(self, answer: PolicyAnswered, question: AskPolicy) -> PolicyAnswered:
        """Check the answer again: the policy's code could have changed the check in its own process."""
        if answer.wish is None or question.view is None:
            return answer
        try:
            return evolve(answer, wish=checked(question.policy, answer.wish, question.view))
        except BadAnswer as error:
            raise NoAnswer(str(error)) from None

    def _begun(self) -> Running:
        running = self._running = _start()
        name = self._begin.policy
        problem = self._exchanged(
            running,
            self._begin,
            protocol.decode_begun,
            self._limits.begin_s,
            late=lambda limit: f"the policy {name} was not there within {limit}",
            who=f"the process of the policy {name}",
        )
        if problem is not None:
            self._end()
            raise NoAnswer(problem)
        return running

    def _exchanged(
        self,
        running: Running,
        sent: object,
        read: Callable[[bytes], T],
        wait_s: float,
        *,
        late: Callable[[str], str],
        who: str,
    ) -> T:
        """Send something and return the reply. Raises NoAnswer, after ending the process."""
        deadline = time.monotonic() + wait_s
        try:
            running.pipe.send(pickle.dumps(sent), deadline)
            return read(running.pipe.receive(deadline))
        except OutOfTime:
            self._end()
            raise NoAnswer(late(duration(wait_s * 1_000))) from None
        except PipeClosed:
            raise NoAnswer(f"{who} ended{self._exit()}") from None
        except protocol.Nonsense:
            self._end()
            raise NoAnswer("its process wrote something other than its answer") from None

    def _exit(self) -> str:
        """Return how the process has ended, as part of a sentence, and release it."""
        running = self._running
        with suppress(subprocess.TimeoutExpired):
            if running is not None:
                running.process.wait(_END_S)
        code = None if running is None else running.process.returncode
        self._end()
        return "" if code is None else f" with exit code {code}" if code >= 0 else f" by signal {-code}"

    def _end(self) -> None:
        if self._running is not None:
            self._running.end()
            self._running = None


def _start() -> Running:
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _BOOTSTRAP.format(path=[part for part in sys.path if part])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    except OSError as error:
        raise NoAnswer(f"its process could not be started: {error.strerror or error}") from None
    return Running(process)
