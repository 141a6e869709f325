"""Tests of the catalogue of reasons: every reason is used, and every sentence can be filled in."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

import spark_elastic.core
from spark_elastic.core.reasons import catalogue
from spark_elastic.core.reasons.batch import STAGE_REASONS
from spark_elastic.core.reasons.catalogue import message
from spark_elastic.core.reasons.reason import fill

CORE = Path(spark_elastic.core.__file__).parent
REASONS = {**catalogue.REASONS, **STAGE_REASONS}


def test_every_reason_is_used_and_every_used_one_is_in_the_catalogue() -> None:
    source = "".join(path.read_text() for path in CORE.rglob("*.py") if path.parent.name != "reasons")
    assert [code for code in REASONS if f'"{code}"' not in source] == []
    named = set(re.findall(r'(?:report|reason=|_nothing\(now, |hold\()\(?\s*"([a-z_]+)"', source))
    assert named <= REASONS.keys()


@pytest.mark.parametrize("code", REASONS)
def test_every_sentence_can_be_said(code: str) -> None:
    sentence = REASONS[code].sentence
    values = {name: 3 for _, name, _, _ in Formatter().parse(sentence) if name}
    said = fill(sentence, **values)
    assert "{" not in said
    assert said.endswith((".", "3"))


def test_no_two_reasons_have_the_same_sentence() -> None:
    assert len({reason.sentence for reason in REASONS.values()}) == len(REASONS)


def test_a_missing_number_is_not_papered_over() -> None:
    with pytest.raises(KeyError, match="slots"):
        message("parallelism_fits", before=1)


@pytest.mark.parametrize(
    ("ms", "words"), [(0, "0 ms"), (999.4, "999 ms"), (1000, "1 s"), (1500, "1.5 s"), (300_000, "5 min")]
)
def test_durations(ms: float, words: str) -> None:
    assert fill("{ms:ms}", ms=ms) == words


def test_one_and_many() -> None:
    assert fill("{n:slot}", n=1) == "1 slot"
    assert fill("{n:slot}", n=0) == "0 slots"
