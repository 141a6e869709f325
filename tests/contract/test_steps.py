"""Tests that the command line and the tab agree on what one step up and one step down mean."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic_tools.cli.rescale import stepped
from tests.contract.test_python_contract import read


@pytest.mark.parametrize("case", read("steps.json"), ids=lambda case: f"{case['bounds']}-{case['now']}")
def test_the_command_line_moves_the_bounds_that_are_agreed(case: dict[str, Any]) -> None:
    for step, wanted in ((1, case["up"]), (-1, case["down"])):
        assert stepped(case["bounds"], case["now"], step, case["most"]) == wanted
