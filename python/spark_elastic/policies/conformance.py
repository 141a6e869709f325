"""Checks that a custom policy is one: a pure function that answers with sense, and soon.

    from spark_elastic.policies.conformance import check

    def test_late_night_is_a_policy() -> None:
        check(LateNight(slots="4"))

It is shown views that are made up. With hypothesis installed the smallest view is found that breaks a rule;
without it plain seeds do.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from importlib.util import find_spec
from random import Random

from spark_elastic.core.policies.policy import Policy, Wish
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.policies.answers import BadAnswer, ask
from spark_elastic.policies.views import view as made_up

__all__ = ["NotConforming", "check", "check_view", "made_up"]

VIEWS = 200
LONGEST_S = 0.5
"""How long a decision may take here. An application waits for 5 s, but it asks once a second."""


class NotConforming(AssertionError):
    """A policy breaks a rule; the text says which, and by what."""


def check(policy: Policy, *, views: int = VIEWS, longest_s: float = LONGEST_S) -> None:
    """Check a policy with so many views that are made up. Raises NotConforming.

    Each decision has to be made within `longest_s` seconds.
    """
    name = type(policy).__name__

    def one(chance: Random) -> None:
        first, second = made_up(chance), made_up(chance)
        wish = _decided(name, policy, first, longest_s)
        _decided(name, policy, second, longest_s)
        again = _decided(name, policy, first, longest_s)
        if wish != again:
            raise NotConforming(
                f"{name} keeps something between two decisions: it wanted {wish}, and after another view it "
                f"wants {again} for {first}"
            )

    _for_many(one, views)


def check_view(policy: Policy, view: ClusterView, *, longest_s: float = LONGEST_S) -> Wish:
    """Check a policy with one view, such as one that it is to get right; return its wish.

    Raises NotConforming.
    """
    return _decided(type(policy).__name__, policy, view, longest_s)


def _decided(name: str, policy: Policy, view: ClusterView, longest_s: float) -> Wish:
    before = pickle.dumps(view)
    began = time.perf_counter()
    wish = _asked(name, policy, view)
    took_s = time.perf_counter() - began
    if took_s > longest_s:
        raise NotConforming(f"{name} took {took_s:.2f} s, allowed are {longest_s:g} s, for {view}")
    copy: ClusterView = pickle.loads(before)
    if view != copy:
        raise NotConforming(f"{name} has changed what it was shown, which was {copy}: it may only look at it")
    again = _asked(name, policy, copy)
    if again != wish:
        raise NotConforming(f"{name} wants {wish} and then {again} for the same view: {view}")
    _check_sense(name, wish, view)
    return wish


def _asked(name: str, policy: Policy, view: ClusterView) -> Wish:
    try:
        return ask(name, policy, view)
    except BadAnswer as error:
        raise NotConforming(f"{name} has no answer that can be used: {error}, for {view}") from error


def _check_sense(name: str, wish: Wish, view: ClusterView) -> None:
    """Check what an application would make of a wish."""
    if wish.until is not None and wish.until <= view.at:
        raise NotConforming(f"{name} wants to be asked again at {wish.until}, which has passed at {view.at}")
    for id, wanted in wish.queries.items():
        if wanted.until is not None and wanted.until <= view.at:
            raise NotConforming(
                f"{name} wants to be asked again about {id} at {wanted.until}, which has passed at {view.at} "
                "(epoch ms)"
            )


def _for_many(one: Callable[[Random], None], count: int) -> None:
    if find_spec("hypothesis") is not None:
        _for_the_smallest(one, count)
        return
    for seed in range(count):
        one(Random(seed))


def _for_the_smallest(one: Callable[[Random], None], count: int) -> None:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    found: list[NotConforming] = []

    def noted(chance: Random) -> None:
        try:
            one(chance)
        except NotConforming as error:
            found.append(error)
            raise

    usual = settings(
        max_examples=count, deadline=None, derandomize=True, report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    try:
        usual(given(st.randoms(use_true_random=False))(noted))()
    except Exception:
        if not found:
            raise
        # The smallest one; hypothesis has words of its own for what does not fail each time.
        raise found[-1] from None
