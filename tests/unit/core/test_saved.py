"""Tests of the saved state of a scheduler as plain data: what can be written, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import attrs
import pytest
from attrs import define, field, frozen

from spark_elastic.core.failures.strategy import STRATEGIES, RestartPolicy, new_strategy
from spark_elastic.core.saved import Codec, NotRestorable
from spark_elastic.core.scheduler import Scheduler, codec
from spark_elastic.core.transitions import TRANSITIONS
from tests.unit.core.builder import Scene


@frozen
class Leaf:
    number: int
    word: Literal["a", "b"] = "a"
    share: float = 0.5


@define
class Tree:
    leaves: dict[str, Leaf] = field(factory=dict)
    _inner: tuple[int | None, ...] = ()
    names: frozenset[str] = frozenset()
    pair: tuple[str, int] | None = None
    numbers: Mapping[str, float | int | str] = field(factory=dict)
    later: list[Leaf] = field(factory=list, init=False)


@define
class Handing:
    call: Callable[[int], int]


def test_what_is_read_back_is_what_was_written() -> None:
    tree = Tree(
        leaves={"z": Leaf(1), "a": Leaf(2, "b", 1)}, inner=(1, None), names=frozenset("yx"), pair=("p", 3),
        numbers={"int": 8, "float": 8.0, "str": "8"},
    )  # fmt: skip
    tree.later.append(Leaf(4))
    written = json.loads(json.dumps(Codec(Tree, {}).encode(tree)))
    again = Codec(Tree, {}).decode(written)
    assert again == tree
    assert list(again.leaves) == ["z", "a"]
    assert [type(value) for value in again.numbers.values()] == [int, float, str]
    assert written["of"]["names"] == ["x", "y"]


def tree(**change: Any) -> dict[str, Any]:
    plain = Codec(Tree, {}).encode(Tree(leaves={"a": Leaf(1)}))
    return {**plain, "of": {**plain["of"], **change}}


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ({}, "not whole: KeyError"),
        ({**tree(), "form": "?"}, "its form is [?], this version has form [0-9a-f]{12}"),
        (tree(leaves={"a": {"number": "1", "word": "a", "share": 0.5}}), "'1' is not int"),
        (tree(leaves={"a": {"number": True, "word": "a", "share": 0.5}}), "True is not int"),
        (tree(leaves={"a": {"number": 1, "word": "c", "share": 0.5}}), "'c' is none of 'a', 'b'"),
        (tree(leaves={"a": {"number": 1}}), "Leaf has other fields: number"),
        (tree(leaves=7), "not whole: AttributeError"),
        (tree(fruit=[]), "Tree has other fields"),
        (tree(pair=["p"]), "not whole: ValueError"),
    ],
)
def test_what_is_not_whole_is_refused(plain: dict[str, Any], says: str) -> None:
    with pytest.raises(NotRestorable, match=says):
        Codec(Tree, {}).decode(plain)


def test_another_field_is_another_form() -> None:
    @define
    class Bush(Tree):
        berries: int = 0

    Bush.__name__ = "Tree"
    assert Codec(Bush, {}).form != Codec(Tree, {}).form


def test_the_form_is_the_same_in_every_process() -> None:
    """A process that has read events before has already resolved the types of their fields."""
    before = codec.__wrapped__().form
    for cls in codec().classes:
        attrs.resolve_types(cls)
    assert codec.__wrapped__().form == before


def test_what_cannot_be_written_is_noticed_when_the_codec_is_made() -> None:
    with pytest.raises(TypeError, match=r"Callable.* cannot be saved"):
        Codec(Handing, {})


def test_an_object_of_a_class_that_the_types_do_not_name_is_not_written() -> None:
    @frozen
    class Twig(Leaf):
        length: int = 1

    with pytest.raises(TypeError, match="Twig is not Leaf"):
        Codec(Tree, {}).encode(Tree(leaves={"a": Twig(1)}))


def test_every_state_and_every_strategy_is_known() -> None:
    """New ones are covered automatically; a class that no field names fails here or in the codec."""
    assert TRANSITIONS.keys() <= {cls.__name__ for cls in codec().classes}
    assert {type(new_strategy(policy(), 0)) for policy in get_args(RestartPolicy)} == set(STRATEGIES)
    assert set(STRATEGIES) <= codec().classes


def test_a_scheduler_that_breaks_an_invariant_is_refused(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)
    state = scene.scheduler.save()
    state["of"]["slots"]["_total"] = 7
    with pytest.raises(NotRestorable, match="it breaks an invariant"):
        Scheduler.restore(state)


def test_writing_changes_nothing(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)
    assert scene.scheduler.save() == scene.scheduler.save()
    assert Scheduler.restore(scene.scheduler.save()) == scene.scheduler
