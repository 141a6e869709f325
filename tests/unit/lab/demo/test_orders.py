"""Tests of the demonstration's check that executors came and went as ordered."""

from __future__ import annotations

import pytest

from spark_elastic.core.actions import Action, DecommissionExecutors, RequestExecutors
from spark_elastic_lab.demo.chronicle import Chronicle
from spark_elastic_lab.demo.scenario import check_orders
from tests.unit.lab.demo.facts import added, decommissioning, removed, report, submitted


def wanted(at: int, total: int, why: str = "autoscale_up") -> list[Action]:
    """Return the actions of a policy process that scales up."""
    return [
        report("q", "Is to have more.", reason=why, at=at, before=total - 1, after=total),
        report(None, "Asks for them.", reason="executors_wanted", at=at),
        RequestExecutors(id=f"a{at}", cause="s1", total=total),
    ]


def not_wanted(at: int, executor: str, total: int) -> list[Action]:
    """Return the actions of a policy process that scales down."""
    return [
        report("q", "Is to have fewer.", reason="autoscale_down", at=at, before=total + 1, after=total),
        report(None, "Gives one back.", reason="executors_not_wanted", at=at),
        RequestExecutors(id=f"a{at}", cause="s1", total=total),
        DecommissionExecutors(id=f"b{at}", cause="s1", executors=(executor,)),
    ]


@pytest.fixture
def chronicle() -> Chronicle:
    """A chronicle with an executor that the cluster provided unasked, and one that was requested later."""
    told = Chronicle()
    told.follow(added("0", 100))
    told.follow(submitted("q"))
    for action in wanted(5000, 2):
        told.order(action)
    told.follow(added("1", 9000))
    return told


def test_each_that_came_and_went_is_told_with_what_the_policy_wanted(chronicle: Chronicle) -> None:
    for action in not_wanted(20_000, "0", 1):
        chronicle.order(action)
    chronicle.follow(decommissioning("0", 20_100))
    chronicle.follow(removed("0", 21_000))
    for action in wanted(30_000, 2, "autoscale_up_backlog"):
        chronicle.order(action)
    chronicle.follow(added("2", 36_000))
    found = check_orders(chronicle)
    assert found.ok
    assert found.found == "2 came (1 autoscale_up, 1 autoscale_up_backlog), 1 went (1 autoscale_down)"


def test_one_that_went_without_an_order_is_named(chronicle: Chronicle) -> None:
    chronicle.follow(removed("1", 20_000))
    found = check_orders(chronicle)
    assert (found.ok, found.found) == (False, "unasked: executor 1 removed")


def test_one_that_came_beyond_what_was_requested_is_named(chronicle: Chronicle) -> None:
    chronicle.follow(added("2", 12_000))
    found = check_orders(chronicle)
    assert (found.ok, found.found) == (False, "unasked: executor 2 added")


def test_one_that_was_under_way_when_fewer_were_wanted_counts_as_requested(chronicle: Chronicle) -> None:
    for action in wanted(12_000, 3):
        chronicle.order(action)
    for action in not_wanted(13_000, "0", 2):
        chronicle.order(action)
    chronicle.follow(added("2", 13_050))
    chronicle.follow(decommissioning("0", 13_100))
    assert check_orders(chronicle).ok
    chronicle.follow(added("3", 14_000))
    assert not check_orders(chronicle).ok


def test_an_order_about_another_executor_does_not_count(chronicle: Chronicle) -> None:
    for action in not_wanted(20_000, "0", 1):
        chronicle.order(action)
    chronicle.follow(decommissioning("1", 20_100))
    assert not check_orders(chronicle).ok


def test_an_order_for_which_no_policy_has_wanted_anything_does_not_count() -> None:
    chronicle = Chronicle()
    chronicle.order(report(None, "Asks for them.", reason="executors_wanted", at=5000))
    chronicle.order(RequestExecutors(id="a1", cause="s1", total=1))
    chronicle.follow(added("0", 9000))
    found = check_orders(chronicle)
    assert (found.ok, found.found) == (False, "1 came (1 for no reason), none went")


def test_without_orders_nothing_is_shown() -> None:
    chronicle = Chronicle()
    chronicle.follow(added("0", 100))
    assert (check_orders(chronicle).ok, check_orders(chronicle).found) == (False, "nothing was ordered")
