"""Tests of targets in the policy file."""

from __future__ import annotations

import pytest

from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.policy_file import PolicyFileError, load_policy


def test_a_target_is_that_of_the_defaults_as_far_as_its_bounds_allow() -> None:
    file = """
        version: 1
        defaults: {target: 4}
        queries:
          counts: {upperBound: 8, target: 6}
          orders: {upperBound: 2}
          free: {target: -1}
          in-full: {vertices: {shuffle: {lowerBound: 2}, source-0: {upperBound: 3}}}
        """
    found = load_policy(file)
    assert found.defaults == WantedBounds(target=4)
    assert found.queries == {
        "counts": {"shuffle": WantedBounds(upper=8, target=6)},
        "orders": {"shuffle": WantedBounds(upper=2, target=2)},
        "free": {"shuffle": WantedBounds()},
        "in-full": {"shuffle": WantedBounds(lower=2, target=4), "source-0": WantedBounds(upper=3)},
    }


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "counts: {upperBound: 3, target: 5}",
            "queries.counts.target is 5, allowed is what its bounds allow",
        ),
        (
            "counts: {vertices: {source-0: {target: 5}}}",
            "queries.counts.vertices.source-0.target is no field",
        ),
        ("counts: {target: many}", "queries.counts.target is 'many', allowed is a whole number"),
    ],
)
def test_a_target_that_cannot_be_is_refused(said: str, words: str) -> None:
    with pytest.raises(PolicyFileError) as refusal:
        load_policy(f"{{version: 1, queries: {{{said}}}}}")
    (found,) = refusal.value.errors
    assert words in found
