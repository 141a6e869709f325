"""Custom policies in a simulation: asked on the spot, so that the same scenario gives the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_elastic.core.keys.policies import short
from spark_elastic.core.policies.policy import AskPolicy, Policy
from spark_elastic.policies.answers import BadAnswer, ask
from spark_elastic.policies.loading import make
from spark_elastic.settings import Settings


class CustomPolicies:
    """The custom policies that settings name, each made once. Raises Unusable for one that cannot be had."""

    def __init__(self, settings: Settings) -> None:
        self._policies: Mapping[str, Policy] = {
            name: make(name, settings.policy_options.get(short(name), {}))
            for name in settings.custom_policies
        }

    def answer(self, question: AskPolicy) -> dict[str, Any]:
        """Return what a `PolicyAnswered` says about a question, without its id and its time."""
        assert question.view is not None
        answered = {"policy": question.policy, "asked": question.id}
        try:
            wish = ask(question.policy, self._policies[question.policy], question.view)
        except BadAnswer as error:
            return {**answered, "error": str(error)}
        return {**answered, "wish": wish}
