"""Tests of what is counted in partitions, and of its picture."""

from __future__ import annotations

from spark_elastic_tools.checkpoint.contents import (
    Checksum,
    Contents,
    Part,
    differences,
    picture,
    together,
    total,
    unevenness,
)


def of(*parts: tuple[int, int], store: str = "default", sum_of_hashes: int = 0) -> Contents:
    held = tuple(Part(rows, size) for rows, size in parts)
    return Contents(0, store, held, Checksum(total(held).rows, sum_of_hashes, 0))


def test_partitions_of_all_stores_add_up() -> None:
    assert together([of((1, 10), (2, 20)), of((3, 30), store="other")]) == [Part(4, 40), Part(2, 20)]
    assert together([]) == []


def test_a_checksum_is_of_64_bits() -> None:
    assert Checksum(1, -1, 2**64 + 5) == Checksum(1, 2**64 - 1, 5)
    assert str(Checksum(1_000, 10, 11)) == "1,000 rows, checksum 000000000000000a-000000000000000b"


def test_any_difference_is_told_by_store() -> None:
    before = [of((1, 10)), of((1, 10), store="other", sum_of_hashes=5)]
    assert differences(before, [of((0, 0), (1, 10)), before[1]]) == []
    (said,) = differences(before, [before[0], of((1, 10), store="other", sum_of_hashes=6)])
    assert said.startswith("operator 0, other: 1 rows, checksum 0000000000000005-")
    assert "after" in said
    assert len(differences(before, [])) == 2


def test_few_partitions_are_all_shown_in_their_order() -> None:
    heading, first, second, empty, said = picture([Part(10, 2_048), Part(5, 1_024), Part()])
    assert heading.split() == ["partition", "rows", "bytes"]
    assert first.split() == ["0", "10", "2", "KiB", "█" * 40]
    assert second.split()[-1] == "█" * 20
    assert empty.split() == ["2", "0", "0", "B"]
    assert said.strip() == "the largest has 2.0 times the bytes of the median; 1 of 3 is empty"


def test_many_partitions_are_about_20_lines() -> None:
    parts = [Part(i, i * 100) for i in range(200)]
    lines = picture(parts)
    assert len(lines) <= 20
    assert lines[1].split()[:2] == ["199", "199"]
    assert [line.split()[0] for line in lines[-3:-1]] == ["median", "smallest"]
    assert lines[-1].strip().startswith("the 14 largest of 200 partitions; the largest has 2.0 times")


def test_a_small_partition_among_large_ones_is_seen() -> None:
    assert picture([Part(10**6, 10**9), Part(1, 8)])[2].endswith("▏")


def test_nothing_is_not_uneven() -> None:
    assert picture([Part(), Part()])[-1].strip() == "all partitions are empty"
    assert unevenness([Part(), Part(), Part(1, 8)]) is None
    assert unevenness([]) is None
    assert unevenness([Part(1, 8), Part(1, 8), Part(1, 16)]) == 2
