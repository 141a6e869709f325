"""Tests that requested bounds outlive the driver: what is stored, read back and applied."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action, KeepText
from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.bounds.kept import Requested, UnusableText, read, write
from spark_elastic.core.bounds.requirements import Bounds
from tests.unit.core.builder import STATEFUL, Scene, decisions, only, reasons

NAMES = st.sampled_from(["shuffle", "source-0", "source-1"])
BOUNDS = st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)).map(
    lambda three: Bounds(
        lower=three[0],
        upper=three[0] + three[1],
        target=three[0] + three[2] if three[2] <= three[1] else None,
    )
)
WANTED = st.builds(
    WantedBounds,
    lower=st.integers(-1, 9),
    upper=st.integers(-1, 9),
    target=st.none() | st.integers(-1, 9),
)
FORM = "spark-elastic bounds 1\n"
TEXT = FORM + "asked shuffle 2 3\n"
KEPT = evolve(STATEFUL, kept_bounds=TEXT)
FILE_SAYS = {"counts": {"shuffle": WantedBounds(upper=5)}}


@pytest.fixture
def adaptive(stage: Callable[..., Scene]) -> Callable[..., Scene]:
    return lambda **settings: stage(mode="adaptive", cooldown_ms=0, **settings)


@pytest.fixture
def scene(adaptive: Callable[..., Scene]) -> Scene:
    scene = adaptive()
    scene.start(8)
    return scene


def ask(scene: Scene, lower: int, upper: int) -> tuple[Action, ...]:
    bounds = {"shuffle": (lower, upper)}
    return scene.send(ev.RequirementsRequested, query="counts", bounds=bounds, by="alice")


def change_file(scene: Scene, **bounds: dict[str, WantedBounds]) -> tuple[Action, ...]:
    return scene.send(ev.PolicyFileChanged, path="/p.yaml", bounds=bounds)


def shuffle(scene: Scene) -> tuple[int, int]:
    bounds = scene.query().requirements.shuffle.bounds
    return bounds.lower, bounds.upper


@given(st.dictionaries(NAMES, BOUNDS), st.dictionaries(NAMES, WANTED))
def test_what_is_written_is_read(bounds: dict[str, Bounds], file: dict[str, WantedBounds]) -> None:
    requested = Requested(bounds=bounds, file=file)
    assert read(write(requested)) == requested


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it begins with '', not with 'spark-elastic bounds 1'"),
        ("spark-elastic bounds 2\nasked shuffle 1 2\n", "it begins with 'spark-elastic bounds 2', not with"),
        (FORM + "asked shuffle 3 2\n", "'asked shuffle 3 2': lower bound 3 is above upper bound 2"),
        (FORM + "asked shuffle 0 2\n", "must be >= 1"),
        (FORM + "file shuffle x 2\n", "invalid literal for int"),
        (FORM + "asked shuffle 3\n", "'asked shuffle 3': not a line of this form"),
        (FORM + "said shuffle 3 4\n", "not a line of this form"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(UnusableText, match=why):
        read(text)


def test_what_is_asked_for_is_kept_and_the_last_of_it(scene: Scene) -> None:
    scene.running(8)
    first = only(ask(scene, 2, 4), KeepText)
    assert first.query == "counts"
    assert first.text is not None
    assert read(first.text).bounds == {"shuffle": Bounds(lower=2, upper=4)}
    assert scene.done(first) == ()
    second = only(ask(scene, 2, 3), KeepText)
    assert second.text == TEXT
    said = scene.fail(second, "no space left")
    (failed,) = decisions(said)
    assert (failed.reason, failed.query) == ("bounds_not_kept", "counts")
    assert failed.message.endswith("a new driver starts without them: no space left")
    assert shuffle(scene) == (2, 3), "they are in force all the same"


def test_whoever_only_advises_keeps_nothing(adaptive: Callable[..., Scene]) -> None:
    scene = adaptive(advise_only=True)
    scene.start(8)
    scene.submit()
    assert not [action for action in ask(scene, 2, 4) if isinstance(action, KeepText)]


def test_a_query_begins_with_what_is_kept(scene: Scene) -> None:
    actions = scene.submit(KEPT)
    (recalled,) = [decision for decision in decisions(actions) if decision.reason == "bounds_recalled"]
    assert recalled.message.endswith("stored with the checkpoint: shuffle 2 to 3.")
    assert shuffle(scene) == (2, 3)
    assert scene.query().target == 3
    assert not [action for action in actions if isinstance(action, KeepText)]


def test_what_was_asked_for_in_this_driver_counts_more(scene: Scene) -> None:
    scene.running(8)
    ask(scene, 1, 5)
    scene.terminated()
    assert "bounds_recalled" not in reasons(scene.submit(KEPT, run="r2"))
    assert shuffle(scene) == (1, 5)


def test_what_is_kept_and_cannot_be_read_does_not_count_and_stays(scene: Scene) -> None:
    actions = scene.submit(evolve(STATEFUL, kept_bounds="another form"))
    (refused,) = [decision for decision in decisions(actions) if decision.reason == "kept_bounds_unusable"]
    assert refused.message.endswith("it begins with 'another form', not with 'spark-elastic bounds 1'")
    assert shuffle(scene) == (1, 32_768)
    assert not [action for action in actions if isinstance(action, KeepText)]


def test_in_reactive_mode_nothing_is_read(stage: Callable[..., Scene]) -> None:
    scene = stage(mode="reactive")
    scene.start(8)
    assert "bounds_recalled" not in reasons(scene.submit(KEPT))


def test_who_takes_them_back_has_what_is_configured(scene: Scene) -> None:
    change_file(scene, **FILE_SAYS)
    scene.running(5)
    ask(scene, 2, 3)
    actions = scene.send(ev.RequirementsDropped, query="counts", by="alice")
    assert "bounds_dropped" in reasons(actions)
    assert only(actions, KeepText).text is None
    assert shuffle(scene) == (1, 5)


def test_of_a_query_that_does_not_live_nothing_is_kept_or_removed(scene: Scene) -> None:
    scene.running(8)
    scene.terminated()
    dropped = scene.send(ev.RequirementsDropped, query="counts", by="alice")
    for actions in (ask(scene, 2, 3), dropped, scene.send(ev.RequirementsDropped, query="x", by="alice")):
        assert not [action for action in actions if isinstance(action, KeepText)]


class TestPolicyFile:
    def test_a_change_of_the_file_takes_the_place_of_a_request(self, scene: Scene) -> None:
        scene.running(8)
        ask(scene, 2, 3)
        actions = change_file(scene, **FILE_SAYS)
        assert only(actions, KeepText).text is None
        assert shuffle(scene) == (1, 5)

    def test_one_that_says_the_same_of_the_query_does_not(self, scene: Scene) -> None:
        change_file(scene, **FILE_SAYS)
        scene.running(5)
        ask(scene, 2, 3)
        actions = change_file(scene, **FILE_SAYS, other={"shuffle": WantedBounds(upper=9)})
        assert not [action for action in actions if isinstance(action, KeepText)]
        assert shuffle(scene) == (2, 3)
        change_file(scene, other={"shuffle": WantedBounds(upper=9)})
        assert shuffle(scene) == (2, 3), "a file that says nothing of it changes nothing"

    def test_what_is_kept_counts_while_the_file_says_what_it_said(self, scene: Scene) -> None:
        change_file(scene, **FILE_SAYS)
        scene.running(5)
        kept = only(ask(scene, 2, 3), KeepText).text
        later = Scene(scene.settings)
        later.start(8)
        change_file(later, **FILE_SAYS)
        assert "bounds_recalled" in reasons(later.submit(evolve(STATEFUL, kept_bounds=kept)))
        assert shuffle(later) == (2, 3)

    def test_a_file_that_was_changed_meanwhile_counts_more(self, scene: Scene) -> None:
        change_file(scene, **FILE_SAYS)
        actions = scene.submit(KEPT)
        assert "kept_bounds_outdated" in reasons(actions)
        assert only(actions, KeepText).text is None
        assert shuffle(scene) == (1, 5)

    def test_the_file_is_read_after_the_snapshot(self, adaptive: Callable[..., Scene]) -> None:
        for said, found in ((FILE_SAYS, (1, 5)), ({}, (2, 3))):
            scene = adaptive()
            scene.start(8, queries=[ev.QueryInfo(facts=KEPT, run="r1", run_state="running", partitions=3)])
            assert shuffle(scene) == (2, 3)
            change_file(scene, **said)
            assert shuffle(scene) == found


class TestAPolicyProcessThatIsReplaced:
    def shown(self, kept: str | None) -> ev.QueryInfo:
        facts = evolve(STATEFUL, kept_bounds=kept)
        return ev.QueryInfo(facts=facts, run="r1", run_state="running", partitions=8)

    def test_keeps_again_what_may_not_have_been_kept(self, scene: Scene) -> None:
        scene.running(8)
        lost = only(ask(scene, 2, 3), KeepText)
        again = only(scene.start(8, queries=[self.shown(None)]), KeepText)
        assert again.text == TEXT
        assert scene.fail(lost) == ()
        assert not [
            action for action in scene.start(8, queries=[self.shown(TEXT)]) if isinstance(action, KeepText)
        ]

    def test_begins_with_what_is_kept_without_a_journal(self, scene: Scene) -> None:
        scene.start(8, queries=[self.shown(TEXT)])
        assert shuffle(scene) == (2, 3)
