"""The process of one custom policy: it creates the policy, and answers its parent until the parent ends.

It reads from standard input, and answers through its original standard output. Whatever the policy's code
prints goes to standard error, and so to the driver's log. While that code runs, an alarm of the kernel is
set. The alarm ends this process even if the parent is gone, and even if no Python code runs any more.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from spark_elastic.core.policies.policy import Policy, PolicyAnswered
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.policies.answers import BadAnswer, ask
from spark_elastic.policies.loading import UnusablePolicy, make
from spark_elastic.runtime.custom.pipe import Pipe, PipeClosed
from spark_elastic.runtime.custom.protocol import Begin, encode, encode_begun

_STDIN, _STDOUT, _STDERR = 0, 1, 2


def main() -> None:
    """Answer requests until the parent is gone."""
    pipe = _take_over_pipes()
    try:
        begin: Begin = pickle.loads(pipe.receive())
        with _alarm(begin.alive_s):
            policy = _begin(begin, pipe)
        while policy is not None:
            view = pickle.loads(pipe.receive())
            with _alarm(begin.alive_s):
                answer = _answer(begin.policy, policy, view)
            pipe.send(encode(answer))
    except PipeClosed:
        pass


def _take_over_pipes() -> Pipe:
    """Hide the pipes to the parent from the policy's code: its input is empty, its output goes to the log."""
    reads, writes = os.dup(_STDIN), os.dup(_STDOUT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STDIN)
    os.close(nothing)
    os.dup2(_STDERR, _STDOUT)
    return Pipe(reads, writes)


def _begin(begin: Begin, pipe: Pipe) -> Policy | None:
    try:
        policy = make(begin.policy, begin.options)
    except UnusablePolicy as error:
        pipe.send(encode_begun(str(error)))
        return None
    pipe.send(encode_begun(None))
    return policy


def _answer(name: str, policy: Policy, view: ClusterView) -> PolicyAnswered:
    try:
        return PolicyAnswered(id="", at=0, policy=name, asked="", wish=ask(name, policy, view))
    except BadAnswer as error:
        return PolicyAnswered(id="", at=0, policy=name, asked="", error=str(error))


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Limit the time of a block that may never end; after `seconds` the kernel ends this process."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
