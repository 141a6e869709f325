"""A scene in which the test answers for the custom policies."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from spark_elastic.core.actions import Action
from spark_elastic.core.events import Event
from spark_elastic.core.policies.custom import CustomMetrics
from spark_elastic.core.policies.policy import AskPolicy, PolicyAnswered, QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView
from tests.unit.core.builder import STATELESS, Scene
from tests.unit.core.policies.world import SETTINGS

NIGHT = "my_package.scaling:LateNight"
CUSTOM = evolve(SETTINGS, policy=(NIGHT,))


class Asked(Scene):
    """Records the questions, and answers as the test says."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.asked: list[AskPolicy] = []
        self.answered: set[str] = set()

    def send(self, kind: type[Event], **fields: Any) -> tuple[Action, ...]:
        actions = super().send(kind, **fields)
        self.asked += [action for action in actions if isinstance(action, AskPolicy)]
        return actions

    def questions(self, policy: str = NIGHT) -> list[AskPolicy]:
        return [one for one in self.asked if one.policy == policy]

    def waits(self, policy: str = NIGHT) -> bool:
        """Return whether the last question has no answer yet."""
        return bool(self.questions(policy)) and self.questions(policy)[-1].id not in self.answered

    def answer(self, slots: int | None = None, policy: str = NIGHT, **fields: Any) -> tuple[Action, ...]:
        """Answer the last question with this many slots for each of its queries, or else with `fields`."""
        question = self.questions(policy)[-1]
        assert question.view is not None
        assert question.id not in self.answered
        if slots is not None:
            fields["wish"] = wants(question.view, slots)
        self.answered.add(question.id)
        return self.send(PolicyAnswered, policy=policy, asked=question.id, **fields)

    def settle(self, slots: int | None = None, policy: str = NIGHT, **fields: Any) -> tuple[Action, ...]:
        """Answer until no question is left, including those that follow from the answers."""
        actions: tuple[Action, ...] = ()
        for _ in range(5):
            while self.waits(policy):
                actions += self.answer(slots, policy, **fields)
            actions += self.advance(1_000)
        return actions

    def seconds(self, count: int) -> tuple[Action, ...]:
        """Let a query commit one micro-batch per second."""
        actions: tuple[Action, ...] = ()
        for _ in range(count):
            actions += self.advance(1_000) + self.batch(300, 4, "enrich")
        return actions

    def begin(self) -> None:
        """Start a query; the question about the application without queries is answered before."""
        self.start(4, 4)
        self.answer(wish=Wish())
        self.advance(1_000)
        self.running(8, STATELESS)

    @property
    def metrics(self) -> CustomMetrics:
        return self.scheduler.custom_policies[NIGHT]

    @property
    def granted(self) -> int | None:
        return self.query("enrich").granted_slots


def wants(view: ClusterView, slots: int, until: int | None = None) -> Wish:
    said = {"policy": "LateNight", "says": "enough by night"}
    wish = QueryWish(slots=slots, reason="policy_says", numbers=said, until=until)
    return Wish(queries=dict.fromkeys(view.queries, wish))
