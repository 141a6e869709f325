"""Tests of custom policies in processes of their own: whatever a policy does, an answer comes in time."""

from __future__ import annotations

import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from spark_elastic.core.policies.policy import AskPolicy, PolicyAnswered
from spark_elastic.policies.conformance import made_up
from spark_elastic.runtime.custom import protocol, worker
from spark_elastic.runtime.custom.host import Host
from spark_elastic.runtime.custom.protocol import Limits
from spark_elastic.settings import Settings
from tests.unit.policies.seen import QUERY, VIEW

pytestmark = pytest.mark.long

EXAMPLES = "tests.unit.policies.examples"
PATIENCE_S = 30.0

StartedSince = Callable[[], list[psutil.Process]]


class Asked:
    """A host, and the answers that it received from its policies, in order."""

    def __init__(
        self,
        *,
        answer_s: float = PATIENCE_S,
        begin_s: float = PATIENCE_S,
        alive_s: float = 2 * PATIENCE_S,
        **options: str,
    ) -> None:
        self._woken = threading.Event()
        self.host = Host(self._woken.set, Limits(answer_s=answer_s, begin_s=begin_s, alive_s=alive_s))
        self.host.begin(Settings(policy_options=dict.fromkeys(("Steady", "cannot_be_made"), options)))
        self.count = 0

    def ask(self, policy: str) -> PolicyAnswered:
        self.count += 1
        self.host.ask(AskPolicy(id=f"a{self.count}", cause="s1", policy=f"{EXAMPLES}:{policy}", view=VIEW))
        return self.next()

    def next(self) -> PolicyAnswered:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self._woken.wait(0.1)
            self._woken.clear()
            for answer in self.host.take():
                return answer
        raise AssertionError("nobody has answered")

    def error(self, policy: str) -> str:
        answer = self.ask(policy)
        assert answer.wish is None
        assert answer.error is not None
        return answer.error


@pytest.fixture
def asked(started_since: StartedSince) -> Iterator[Asked]:
    found = Asked()
    yield found
    found.host.close()
    assert started_since() == []


@pytest.fixture
def hasty(started_since: StartedSince) -> Iterator[Asked]:
    found = Asked(answer_s=0.5)
    yield found
    found.host.close()
    assert started_since() == []


def test_what_it_wants_comes_back_with_the_id_of_the_question(asked: Asked) -> None:
    answer = asked.ask("Steady")
    assert (answer.policy, answer.asked, answer.error) == (f"{EXAMPLES}:Steady", "a1", None)
    assert answer.wish is not None
    (wish,) = answer.wish.queries.values()
    assert (wish.slots, wish.reason) == (2, "policy_says")
    assert wish.numbers == {"policy": "Steady", "says": "2 are always enough"}


def test_its_options_come_as_text() -> None:
    with_options = Asked(slots="7")
    answer = with_options.ask("Steady")
    with_options.host.close()
    assert answer.wish is not None
    assert answer.wish.queries[QUERY].slots == 7


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("Raises", r"^LookupError: no such model \(examples.py, line \d+\)$"),
        ("Exits", r"^SystemExit: 3 \(examples.py, line \d+\)$"),
        ("Leaves", "^its process ended with exit code 3$"),
        ("Crashes", "^its process ended by signal 9$"),
        ("has_no_decide", r"the policy \S+ is a dict: give it a method decide\(view\)$"),
        ("Nothing", r"cannot be imported: AttributeError: .* install its package where"),
    ],
)
def test_one_that_fails_says_why_and_is_asked_again(
    asked: Asked, started_since: StartedSince, policy: str, says: str
) -> None:
    for _ in range(2):
        assert re.search(says, asked.error(policy))
    assert len(started_since()) <= 1


@pytest.mark.parametrize("policy", ["Sleeps", "HoldsTheLock"])
def test_one_that_hangs_is_ended_and_leaves_nothing_behind(
    hasty: Asked, started_since: StartedSince, policy: str
) -> None:
    asked_before = threading.active_count()
    for _ in range(3):
        assert hasty.error(policy) == "it has not answered within 500 ms, and its process was ended"
        assert started_since() == []
    assert threading.active_count() <= asked_before + 1


def test_one_that_hangs_before_it_is_there(asked: Asked) -> None:
    hasty = Asked(begin_s=1.0)
    assert hasty.error("hangs_at_once") == f"the policy {EXAMPLES}:hangs_at_once was not there within 1 s"
    hasty.host.close()


def test_one_that_cannot_be_started_is_tried_again_at_the_next_question(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, refused = worker._start, list[str]()

    def start() -> worker.Running:
        if not refused:
            refused.append("no thread")
            raise RuntimeError("can't start new thread")
        return started()

    monkeypatch.setattr(worker, "_start", start)
    assert asked.ask("Steady").wish is not None
    assert refused == ["no thread"]


def test_what_it_prints_harms_nothing(asked: Asked, capfd: pytest.CaptureFixture[str]) -> None:
    answer = asked.ask("Prints")
    assert answer.error is None
    assert "looking around" in capfd.readouterr().err


def test_others_are_asked_while_one_hangs(asked: Asked) -> None:
    asked.host.ask(AskPolicy(id="a0", cause="s1", policy=f"{EXAMPLES}:Sleeps", view=VIEW))
    assert asked.ask("Steady").policy == f"{EXAMPLES}:Steady"


def test_of_questions_that_wait_the_last_one_counts(asked: Asked) -> None:
    asked.ask("Steady")
    for number in (7, 8, 9):
        asked.host.ask(AskPolicy(id=f"a{number}", cause="s1", policy=f"{EXAMPLES}:Slow", view=VIEW))
    answers: list[PolicyAnswered] = []
    while not answers or answers[-1].asked != "a9":
        answers.append(asked.next())
    assert len(answers) < 3


def test_problems_show_at_the_begin(asked: Asked) -> None:
    names = tuple(f"{EXAMPLES}:{name}" for name in ("Steady", "cannot_be_made"))
    (problem,) = asked.host.problems(names, PATIENCE_S)
    assert problem.startswith(
        f"the policy {EXAMPLES}:cannot_be_made cannot be made with no options: ValueError"
    )
    assert problem.endswith("set spark.elastic.policy.cannot_be_made.OPTION as its constructor wants it")


def test_credentials_in_its_errors_are_not_told(asked: Asked) -> None:
    """A journal that is read back has no credentials, so the error must be recorded without them."""
    (problem,) = asked.host.problems((f"{EXAMPLES}:refuses_its_address",), PATIENCE_S)
    for said in (problem, asked.error("refuses_its_address")):
        assert "jdbc:postgresql://db/x" in said
        assert "secret1" not in said


def test_nobody_waits_longer_for_the_begin_than_is_said(asked: Asked) -> None:
    began = time.monotonic()
    assert asked.host.problems((f"{EXAMPLES}:hangs_at_once",), 0.2) == ()
    assert time.monotonic() - began < 5.0


def test_what_is_let_through_there_is_checked_again_here(asked: Asked) -> None:
    assert asked.error("Forges").startswith("LookupError: once")
    assert asked.error("Forges").startswith("it wants slots for the query 'nobody', there are orders")


def test_the_kernel_ends_one_that_nobody_else_ends() -> None:
    forgotten = Asked(alive_s=1.0)
    assert forgotten.error("HoldsTheLock") == f"its process ended by signal {int(signal.SIGALRM)}"
    forgotten.host.close()


def test_its_process_ends_with_ours() -> None:
    script = (
        f"import sys; sys.path[:] = {[part for part in sys.path if part]!r}\n"
        "import time\n"
        "from tests.unit.runtime.custom.test_worker import Asked\n"
        "asked = Asked()\n"
        "assert asked.ask('Steady').error is None\n"
        "print('asked', flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"asked\n"
            (child,) = psutil.Process(parent.pid).children()
        finally:
            parent.kill()
    psutil.wait_procs([child], PATIENCE_S)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_an_answer_that_cannot_be_delivered_is_not_the_last() -> None:
    answers: queue.SimpleQueue[PolicyAnswered] = queue.SimpleQueue()
    failures = iter([True, False])

    def deliver(answer: PolicyAnswered) -> None:
        answers.put(answer)
        if next(failures):
            raise BrokenPipeError

    begin = protocol.Begin(policy=f"{EXAMPLES}:Steady", options={}, alive_s=PATIENCE_S)
    asked = worker.Worker(begin, deliver, Limits(answer_s=PATIENCE_S, begin_s=PATIENCE_S, alive_s=PATIENCE_S))
    try:
        for id in ("a1", "a2"):
            asked.ask(AskPolicy(id=id, cause="s1", policy=begin.policy, view=VIEW))
            assert answers.get(timeout=PATIENCE_S).asked == id
    finally:
        asked.close()


def test_an_answer_of_another_kind_is_nonsense() -> None:
    for message in (
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"type": "TimerFired", "id": "r1", "at": 1, "timer": "t1"}',
    ):
        with pytest.raises(protocol.Nonsense):
            protocol.decode(message)
    for message in (b"", b"[]", b'{"error": 3}'):
        with pytest.raises(protocol.Nonsense):
            protocol.decode_begun(message)


def test_a_view_survives_the_way_to_the_process() -> None:
    import pickle
    from random import Random

    for seed in range(20):
        view = made_up(Random(seed))
        assert pickle.loads(pickle.dumps(view)) == view
