"""Ask a custom policy and check its answer: anything but a valid wish becomes an error in one line."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import TypeVar

from attrs import evolve

from spark_elastic.core.keys.policies import short
from spark_elastic.core.policies.custom import SPOKEN, SPOKEN_OF_BATCH
from spark_elastic.core.policies.policy import BatchWish, Policy, PolicyAnswered, QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.reasons import catalogue
from spark_elastic.core.reasons.policies import POLICY_REASONS
from spark_elastic.wire import WireError, decode_event, encode_event

MOST_EXECUTORS = 1 << 15
"""No application has more executors: a wish for more is a mistake."""

_LONGEST = 300
_MOST_NUMBERS = 32
_TAKEN = {"before", "after"}

_Wanted = TypeVar("_Wanted", QueryWish, BatchWish)


class BadAnswer(ValueError):
    """The answer of a policy is not a valid wish; the text says what was found, and what is allowed."""


def ask(name: str, policy: Policy, view: ClusterView) -> Wish:
    """Return the wish of the policy with this name.

    Raises BadAnswer for whatever the policy raises or returns instead, and if it tries to exit the process.
    """
    try:
        given = policy.decide(view)
    except (Exception, SystemExit) as error:
        raise BadAnswer(described(error)) from error
    return checked(name, given, view)


def checked(name: str, given: object, view: ClusterView) -> Wish:
    """Check a wish, and return it as it is written and read back. Raises BadAnswer."""
    if not isinstance(given, Wish):
        raise BadAnswer(f"decide() returned {_shown(given)}, allowed is a Wish: return Wish(queries=…)")
    wish = _plain(name, given)
    for query in (*wish.queries, *wish.limits):
        if query not in view.queries:
            allowed = ", ".join(view.queries) or "none"
            raise BadAnswer(
                f"it wants slots for the query {_shown(query)}, there are {allowed}: take the keys of "
                "view.queries"
            )
    for query, wanted in wish.queries.items():
        _check_words(query, wanted, {"wanted": 1, **wanted.told})
    if wish.batch is not None:
        _check_words("batch stages", wish.batch, wish.batch.numbers)
    for executors in (wish.executors, None if wish.batch is None else wish.batch.executors):
        if executors is not None and executors > MOST_EXECUTORS:
            raise BadAnswer(f"it wants {executors} executors, allowed are {MOST_EXECUTORS} at most")
    return evolve(
        wish,
        queries={query: _spoken(name, one, SPOKEN) for query, one in wish.queries.items()},
        batch=None if wish.batch is None else _spoken(name, wish.batch, SPOKEN_OF_BATCH),
        limits={
            query: tuple(evolve(limit, by=_one_line(limit.by)) for limit in limits)
            for query, limits in wish.limits.items()
        },
        executors_by=_one_line(wish.executors_by),
    )


def described(error: BaseException) -> str:
    """Describe in one line what was raised, and where in code that is not ours."""
    frames = traceback.walk_tb(error.__traceback__)
    theirs = [(Path(frame.f_code.co_filename).name, line) for frame, line in frames if _is_theirs(frame)]
    where = f" ({theirs[-1][0]}, line {theirs[-1][1]})" if theirs else ""
    text = _one_line(str(error))
    return f"{type(error).__name__}{': ' if text else ''}{text}{where}"


def _is_theirs(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    ours = package == "spark_elastic" or package in sys.stdlib_module_names
    return not ours and Path(frame.f_code.co_filename).is_file()


def _plain(name: str, given: Wish) -> Wish:
    """Write a wish and read it back, which ensures that each value has the right type and is finite."""
    answer = PolicyAnswered(id="", at=0, policy=name, asked="", wish=given)
    try:
        read = decode_event(json.loads(json.dumps(encode_event(answer), allow_nan=False)))
    except WireError as error:
        raise BadAnswer(f"its wish cannot be used: {str(error).partition(': ')[2]}") from error
    except Exception as error:
        raise BadAnswer(f"its wish cannot be used: {described(error)}") from error
    assert isinstance(read, PolicyAnswered)
    assert read.wish is not None
    return read.wish


def _check_words(whom: str, wanted: QueryWish | BatchWish, numbers: Mapping[str, object]) -> None:
    """Check that a wish for a query, or for batch stages, has a reason and numbers that fit its sentence."""
    if not wanted.reason.strip():
        raise BadAnswer(f"its wish for {whom} has no reason: give a reason in one sentence")
    if len(wanted.numbers) > _MOST_NUMBERS:
        raise BadAnswer(f"its wish for {whom} has {len(wanted.numbers)} numbers, allowed are {_MOST_NUMBERS}")
    if taken := wanted.numbers.keys() & _TAKEN:
        raise BadAnswer(
            f"a number of its wish for {whom} is called {min(taken)}, which is taken: give it another name"
        )
    if wanted.reason in POLICY_REASONS:
        try:
            catalogue.message(wanted.reason, **{"slots": 1, **numbers}, before=1, after=1)
        except Exception as error:
            raise BadAnswer(
                f"the numbers of its wish for {whom} do not fill the sentence of '{wanted.reason}' "
                f"({described(error)}): pass on those of the policy that gave this reason, or say it in words"
            ) from error


def _spoken(name: str, wanted: _Wanted, spoken: str) -> _Wanted:
    """Replace a reason in the policy's own words with `spoken`; one from the catalogue stays."""
    numbers = {
        what: _one_line(value) if isinstance(value, str) else value for what, value in wanted.numbers.items()
    }
    if wanted.reason in POLICY_REASONS:
        return evolve(wanted, numbers=numbers)
    said = {"policy": short(name), "says": _one_line(wanted.reason)}
    return evolve(wanted, reason=spoken, numbers={**numbers, **said})


def _one_line(text: str) -> str:
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _shown(value: object) -> str:
    try:
        return _one_line(repr(value))[:80]
    except Exception:
        return f"a {type(value).__name__}"
