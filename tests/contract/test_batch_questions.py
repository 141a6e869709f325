"""Tests that questions about batch stages and their answers are exchanged as JSON."""

from __future__ import annotations

import json
from array import array
from base64 import b64encode
from typing import Any

import pytest

from spark_elastic import wire
from spark_elastic.core.batch.decider import BatchDecider
from spark_elastic.core.batch.questions import QUESTION_TYPES, Ranges

COUNT = {
    "type": "InitialCount",
    "group": "7",
    "planned": 200,
    "slots": 2,
    "exchanges": [{"id": "5", "bytes": 1_000_000_000, "source": "orders"}],
}
RANGES = {
    "type": "Ranges",
    "group": "7",
    "slots": 2,
    "left": None,
    "exchanges": [{"id": "5", "bytes": [70, 900]}, {"id": "6", "bytes": [70, 20]}],
}
SPLIT = {
    "type": "SplitSize",
    "scan": "3:orders",
    "bytes": 1_000_000_000,
    "planned": 3,
    "most": None,
    "smallest": 4 << 20,
    "largest": 128 << 20,
    "slots": 2,
}
OFFSETS = {"type": "SplitOffsets", "scan": "3:kafka", "late": False, "slots": 2}
JOIN = {
    "type": "JoinPartitions",
    "scan": "3:db.orders",
    "source": "SparkBatchQueryScan",
    "planned": 7,
    "joinable": True,
    "slots": 2,
}
EXAMPLES = (COUNT, RANGES, SPLIT, OFFSETS, JOIN)


def packed(*numbers: int) -> str:
    """Pack numbers as Java's ByteBuffer does: big-endian."""
    return b64encode(b"".join(number.to_bytes(8, "big", signed=True) for number in numbers)).decode()


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: value["type"])
def test_the_shim_sends_no_slots(value: dict[str, Any]) -> None:
    sent = {name: of for name, of in value.items() if name != "slots"}
    assert wire.decode_question(sent).slots == 0


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: value["type"])
def test_a_question_gets_an_answer_of_its_own_kind_as_json(value: dict[str, Any]) -> None:
    answer = wire.encode_answer(BatchDecider().answer(wire.decode_question(value)))
    assert answer["type"] == f"{value['type']}Answer"
    assert json.loads(json.dumps(answer)) == answer
    assert answer["record"]["message"].endswith(".")


def test_every_kind_of_question_has_an_example() -> None:
    assert {value["type"] for value in EXAMPLES} == {cls.__name__ for cls in QUESTION_TYPES}


def test_sizes_may_be_packed() -> None:
    exchange: dict[str, Any] = {"id": "5", "bytes": packed(1, -1, 1 << 40)}
    question = wire.decode_question({**RANGES, "exchanges": [exchange]})
    assert isinstance(question, Ranges)
    assert question.exchanges[0].bytes == (1, -1, 1 << 40)


@pytest.mark.parametrize("wrong", ["x", "AAAA", [1.5], [True], None, 7, b64encode(array("b", [1])).decode()])
def test_other_sizes_are_refused(wrong: Any) -> None:
    with pytest.raises(wire.WireError, match=r"expected a list of int, or .* packed .* @ \$\.exchanges\[0\]"):
        wire.decode_question({**RANGES, "exchanges": [{"id": "5", "bytes": wrong}]})


def test_an_unknown_question_or_reason_to_leave_a_group_is_refused() -> None:
    with pytest.raises(wire.WireError, match="unknown question type 'Sizes'"):
        wire.decode_question({"type": "Sizes"})
    with pytest.raises(wire.WireError, match=r"@ \$\.left"):
        wire.decode_question({**RANGES, "left": "outer"})
