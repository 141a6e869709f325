"""Tests of durations and sizes as users type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.keys.key import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500), ("500 ms", 500), ("30 s", 30_000), ("30s", 30_000), ("5 min", 300_000),
        ("2 hours", 7_200_000), ("1d", 86_400_000), ("-1", -1), ("0", 0), ("250", 250), (" 1 Second ", 1_000),
    ],
)  # fmt: skip
def test_durations_are_read_in_both_spellings(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "s", "1.5s", "1 fortnight", "1s 2ms", "PT1S"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("64m", 64 << 20), ("1g", 1 << 30), ("1 gb", 1 << 30), ("8KiB", 8192), ("77", 77), ("5b", 5)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "m", "1x", "1.5g", "1bb"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no size"):
        parse_size(text)


@given(st.integers(min_value=-1, max_value=10**12))
def test_a_written_duration_is_read_back(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms


@given(st.integers(min_value=0, max_value=10**15))
def test_a_written_size_is_read_back(size: int) -> None:
    assert parse_size(format_size(size)) == size
