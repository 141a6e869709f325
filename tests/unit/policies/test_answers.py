"""Tests of the answers that a custom policy may give, and of the errors about all others."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.policies import BatchWish, QueryWish, SlotLimits, Wish
from spark_elastic.policies.answers import BadAnswer, ask, checked
from tests.unit.policies.examples import Answers, Raises
from tests.unit.policies.seen import QUERY, VIEW

GOOD = QueryWish(slots=3, reason="three are enough")


def broken(**fields: Any) -> Wish:
    """Return a wish for the query whose fields were not checked when they were set."""
    wish = evolve(GOOD)
    for name, value in fields.items():
        object.__setattr__(wish, name, value)
    return Wish(queries={QUERY: wish})


def test_words_of_its_own_become_a_reason_of_ours() -> None:
    wish = checked("my.scaling:LateNight", Wish(queries={QUERY: GOOD}), VIEW)
    assert wish.queries[QUERY] == QueryWish(
        slots=3, reason="policy_says", numbers={"policy": "LateNight", "says": "three are enough"}
    )


def test_a_reason_of_ours_is_passed_on() -> None:
    passed = QueryWish(slots=3, reason="autoscale_idle", until=VIEW.at + 5)
    assert checked("x:Y", Wish(queries={QUERY: passed}), VIEW).queries[QUERY] == passed


def test_words_about_batch_stages_become_a_reason_of_ours() -> None:
    wish = checked("my.scaling:LateNight", Wish(batch=BatchWish(executors=2, reason="two will do")), VIEW)
    assert wish.batch == BatchWish(
        executors=2, reason="policy_says_batch", numbers={"policy": "LateNight", "says": "two will do"}
    )
    over = BatchWish(executors=0, reason="batch_over")
    assert checked("x:Y", Wish(batch=over), VIEW).batch == over


def test_numbers_are_kept_and_text_is_one_line() -> None:
    wish = QueryWish(slots=3, reason="a\n\x1b[31mred\tone " + "x" * 400, numbers={"model": "m7", "lag": 2.5})
    told = checked("x:Y", Wish(queries={QUERY: wish}), VIEW).queries[QUERY].numbers
    assert (told["model"], told["lag"]) == ("m7", 2.5)
    assert str(told["says"]).startswith("a [31mred one xxx")
    assert len(str(told["says"])) == 300


def test_credentials_do_not_get_into_the_journal() -> None:
    wish = QueryWish(slots=3, reason="read jdbc:x://a?password=secret1 for it")
    assert "secret1" not in str(checked("x:Y", Wish(queries={QUERY: wish}), VIEW))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, r"decide\(\) returned None, allowed is a Wish: return Wish\(queries=…\)"),
        ({QUERY: 3}, r"decide\(\) returned {'orders': 3}, allowed is a Wish"),
        (Wish(queries={"ordesr": GOOD}), "slots for the query 'ordesr', there are orders: take the keys of"),
        (
            Wish(limits={"ordesr": (SlotLimits(upper=2, by="me"),)}),
            "slots for the query 'ordesr', there are orders: take the keys of",
        ),
        (broken(slots=0), r"'slots' must be >= 1: 0 @ \$\.wish\.queries\['orders'\]"),
        (broken(slots=-4), "must be >= 1: -4"),
        (broken(slots="4"), "expected int, got '4'"),
        (broken(slots=4.0), "expected int, got 4.0"),
        (broken(slots=True), "expected int, got True"),
        (broken(slots=math.nan), "not JSON compliant"),
        (broken(rows_per_ms=math.inf), "not JSON compliant"),
        (broken(numbers={"x": math.nan}), "not JSON compliant"),
        (broken(numbers={"x": None}), "expected float | int | str"),
        (broken(numbers={"before": 3}), "a number of its wish for orders is called before, which is taken"),
        (broken(numbers={str(n): n for n in range(33)}), "has 33 numbers, allowed are 32"),
        (broken(until="soon"), "expected int, got 'soon'"),
        (broken(reason=" "), "its wish for orders has no reason: give a reason"),
        (broken(reason=None), "expected str, got None"),
        (broken(reason="autoscale_up"), "do not fill the sentence of 'autoscale_up'"),
        (Wish(executors=40_000), "it wants 40000 executors, allowed are 32768 at most"),
        (
            Wish(batch=BatchWish(executors=40_000, reason="so")),
            "it wants 40000 executors, allowed are 32768 at most",
        ),
        (Wish(batch=BatchWish(executors=2, reason=" ")), "its wish for batch stages has no reason"),
        (
            Wish(batch=BatchWish(executors=2, reason="batch_up")),
            "the numbers of its wish for batch stages do not fill the sentence of 'batch_up'",
        ),
        (Wish(queries=[GOOD]), "its wish cannot be used: AttributeError"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_is_refused_with_what_is_wrong(given: object, says: str) -> None:
    with pytest.raises(BadAnswer) as caught:
        ask("x:Y", Answers(given), VIEW)  # type: ignore[arg-type]
    assert says.replace("\\", "") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_raised_is_said_in_one_line_with_its_place() -> None:
    with pytest.raises(BadAnswer, match=r"^LookupError: no such model \(examples\.py, line \d+\)$"):
        ask("x:Y", Raises(), VIEW)


def test_what_cannot_even_be_shown_is_refused() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(BadAnswer, match="returned a Rude"):
        checked("x:Y", Rude(), VIEW)
