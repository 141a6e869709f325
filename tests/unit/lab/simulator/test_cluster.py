"""Tests of a cluster that grants what it has, with a delay, and takes back what is released."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from attrs import define, evolve, field

from spark_elastic_lab.simulator.cluster import Clock, Cluster, ClusterSpec, Notices

SPEC = ClusterSpec(initial=1, quota=4, startup_s=10, startup_spread=0)


@define
class Seen:
    told: list[tuple[str, ...]] = field(factory=list)

    @property
    def notices(self) -> Notices:
        return Notices(
            joined=lambda executor: self.told.append(("joined", executor)),
            leaving=lambda executor: self.told.append(("leaving", executor)),
            gone=lambda executor, lost: self.told.append(("lost" if lost else "gone", executor)),
        )


def cluster(spec: ClusterSpec = SPEC) -> tuple[Cluster, Seen]:
    seen = Seen()
    return Cluster(spec, Clock(), Random(1), seen.notices), seen


def run(cluster: Cluster, end: int) -> None:
    for _ in cluster.clock.run(end):
        pass


def test_executors_come_after_their_start_and_within_the_quota() -> None:
    there, seen = cluster()
    assert there.request(9) is None
    assert (there.usable, there.paid) == (1, 4)
    run(there, 9_999)
    assert seen.told == []
    run(there, 10_000)
    assert seen.told == [("joined", "2"), ("joined", "3"), ("joined", "4")]
    assert there.live == ["1", "2", "3", "4"]


def test_start_up_times_spread() -> None:
    there, _ = cluster(evolve(SPEC, quota=50, startup_spread=0.5))
    there.request(50)
    run(there, 4_999)
    assert there.usable == 1
    run(there, 15_000)
    assert there.usable == 50


def test_what_has_not_come_is_called_off_and_what_is_there_stays() -> None:
    there, seen = cluster()
    there.request(4)
    there.request(2)
    assert there.paid == 2
    run(there, 20_000)
    assert seen.told == [("joined", "2")]
    there.request(0)
    assert there.usable == 2


@pytest.mark.parametrize("at_once", [True, False])
def test_executors_are_given_back(at_once: bool) -> None:
    there, seen = cluster(evolve(SPEC, initial=3))
    there.request(1)
    there.release(("3", "2", "nobody"), at_once=at_once)
    assert there.usable == 1
    there.release(("3",), at_once=False)
    run(there, 5_000)
    gone = [("gone", "3"), ("gone", "2")]
    assert seen.told == (gone if at_once else [("leaving", "3"), ("leaving", "2"), *gone])
    assert (there.usable, there.paid) == (1, 1)


def test_one_that_leaves_makes_room_for_one_that_is_wanted() -> None:
    there, seen = cluster(evolve(SPEC, initial=4))
    there.request(3)
    there.release(("4",), at_once=False)
    there.request(4)
    assert there.starting == []
    run(there, 5_000)
    assert there.starting == ["5"]
    run(there, 15_000)
    assert seen.told[-1] == ("joined", "5")


def test_an_executor_that_is_lost_is_replaced() -> None:
    there, seen = cluster(evolve(SPEC, initial=2))
    there.fail("1")
    run(there, 10_000)
    assert seen.told == [("lost", "1"), ("joined", "3")]


def test_executors_fail_as_often_as_they_do() -> None:
    there, seen = cluster(evolve(SPEC, initial=4, mtbf_h=1.0, startup_s=0))
    run(there, 100 * 3_600_000)
    lost = [told for told in seen.told if told[0] == "lost"]
    assert len(lost) == pytest.approx(400, rel=0.15)
    assert there.usable == 4


def test_a_request_can_be_refused_and_changes_nothing() -> None:
    there, _ = cluster(evolve(SPEC, refusals=1.0))
    assert there.request(3) == "the cluster manager does not answer"
    assert (there.target, there.paid) == (1, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"cores": 0}, {"initial": -1}, {"quota": 0}, {"startup_s": -1}, {"startup_spread": 2}, {"mtbf_h": 0},
     {"refusals": 2}, {"decommission_s": -1}, {"initial": 5}],
)  # fmt: skip
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        evolve(SPEC, **wrong)


def test_one_that_fails_with_notice_is_replaced_when_it_is_gone_or_when_more_are_asked_for() -> None:
    for asked, joined in ((2, 40_000), (3, 20_000)):
        there, seen = cluster(evolve(SPEC, initial=2, notice_s=20))
        there.clock.at(10_000, lambda there=there: there.fail("1"))  # type: ignore[misc]
        there.clock.at(10_000, lambda there=there, asked=asked: there.request(asked))  # type: ignore[misc]
        run(there, 10_000)
        assert (there.usable, seen.told) == (1, [("leaving", "1")])
        run(there, joined - 1)
        assert ("joined", "3") not in seen.told
        run(there, joined)
        assert ("joined", "3") in seen.told
        run(there, 60_000)
        assert ("gone", "1") in seen.told
        assert there.noticed == there.leaving == set()


def test_notice_is_given_once_and_not_of_one_that_was_given_back() -> None:
    there, seen = cluster(evolve(SPEC, initial=2, notice_s=20))
    there.fail("1")
    there.fail("1")
    there.target = 0
    there.release(("2",), at_once=False)
    there.fail("2")
    assert seen.told == [("leaving", "1"), ("leaving", "2")]
    run(there, 60_000)
    assert seen.told[2:] == [("gone", "2"), ("gone", "1")]
