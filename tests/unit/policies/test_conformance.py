"""Tests of the conformance test for policies: ours pass it, and each rule fails a policy that breaks it."""

from __future__ import annotations

from random import Random

import pytest

from spark_elastic.core.policies.planner import POLICIES
from spark_elastic.policies import Policy, QueryWish, Wish, conformance
from spark_elastic.policies.conformance import NotConforming, check, check_view, made_up
from tests.unit.policies import examples
from tests.unit.policies.seen import QUERY, VIEW

pytestmark = pytest.mark.long


@pytest.fixture(params=["with hypothesis", "with plain seeds"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "with plain seeds":
        monkeypatch.setattr(conformance, "find_spec", lambda name: None)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_our_own_policies_pass(name: str, engine: None) -> None:
    check(POLICIES[name], views=50, longest_s=5.0)


@pytest.mark.parametrize("policy", [examples.Steady(3), examples.Steady(40_000), examples.Cautious()])
def test_policies_that_work_pass(policy: Policy, engine: None) -> None:
    check(policy, views=50, longest_s=5.0)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (examples.Raises(), r"Raises has no usable answer: LookupError: no such model"),
        (examples.ChangesWhatItSees(), r"ChangesWhatItSees has changed what it was shown"),
        (examples.Counts(), r"Counts (wants .* and then|keeps something)"),
        (examples.Remembers(), r"Remembers keeps something between two decisions"),
        (examples.Slow(), r"Slow took \S+ s, allowed are 0.1 s"),
        (examples.Answers(7), r"returned 7, allowed is a Wish"),
        (examples.AsksForThePast(), r"to be asked again about query-0 at \d+, which has passed"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_who_breaks_a_rule_is_told_which(policy: Policy, says: str, engine: None) -> None:
    with pytest.raises(NotConforming, match=says):
        check(policy, longest_s=0.1 if isinstance(policy, examples.Slow) else 5.0)


def test_one_view_can_be_checked_by_itself() -> None:
    wish = check_view(examples.Steady(3), VIEW)
    assert wish.queries[QUERY].slots == 3
    with pytest.raises(NotConforming, match="the query 'x', there are orders"):
        check_view(examples.Answers(Wish(queries={"x": QueryWish(slots=1, reason="so")})), VIEW)  # type: ignore[arg-type]


def test_views_that_are_made_up_are_of_many_kinds() -> None:
    views = [made_up(Random(seed)) for seed in range(300)]
    queries = [query for one in views for query in one.queries.values()]
    assert {len(one.executors) for one in views} >= {0, 1, 20}
    assert {len(one.queries) for one in views} >= {0, 1, 5}
    for fact in ("held", "idle", "moving", "movable"):
        assert {getattr(query, fact) for query in queries} == {True, False}
    assert {len(query.samples) for query in queries} >= {0, 1, 20}
    assert {query.granted is None for query in queries} == {True, False}
    batches = [one.batch for one in views if one.batch is not None]
    assert 0 < len(batches) < len(views)
    assert {len(batch.stages) for batch in batches} >= {0, 1, 4}
    assert {batch.waiting > 0 for batch in batches} == {True, False}
    for query in queries:
        query.requirements.validate()
        assert [sample.started for sample in query.samples] == sorted(one.started for one in query.samples)
        assert query.granted is None or query.lower <= query.granted <= query.upper
