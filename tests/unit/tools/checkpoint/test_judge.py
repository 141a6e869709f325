"""Tests of which changes of state are possible, and of the reasons against the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from spark_elastic_tools.checkpoint.facts import Checkpoint, read_checkpoint
from spark_elastic_tools.checkpoint.judge import Target, refusal, target_of, unchangeable, unreadable
from spark_elastic_tools.checkpoint.logs import ENCODING, GROUPS_FORMAT, JOIN_FORMAT
from tests.unit.tools.checkpoint.stand_ins import SPARK_4_2, WHERE, files, offsets

JOIN = {"symmetricHashJoin": ["left-keyToNumValues"]}
GROUPS = {"flatMapGroupsWithState": ["default"]}
PROCESSOR = {"transformWithStateExec": ["default"]}


def of(
    partitions: int = 5,
    provider: str = "hdfs",
    form: int = 1,
    operators: Mapping[str, Sequence[str]] | None = None,
    key: Sequence[str] = ("integer",),
    conf: Mapping[str, str] | None = None,
) -> Checkpoint:
    made = files(partitions, provider, form, operators=operators, key=key, conf={**SPARK_4_2, **(conf or {})})
    return read_checkpoint(made, WHERE)


def why(
    checkpoint: Checkpoint, to: str | None = None, count: int | None = None, form: int | None = None
) -> str:
    """Return why a change is refused, "" if it is not."""
    return refusal(checkpoint, target_of(checkpoint, to, count, form)) or ""


def test_state_can_be_moved_and_converted_both_ways() -> None:
    for checkpoint in (of(), of(5, "rocksdb", 1), of(5, "rocksdb", 2)):
        assert why(checkpoint, count=3) == ""
        assert why(checkpoint, to="hdfs" if checkpoint.provider == "rocksdb" else "rocksdb") == ""
    assert why(of(), to="rocksdb", form=1) == ""
    assert why(of(5, "rocksdb", 1), to="rocksdb") == ""
    assert why(of(5, "rocksdb", 2), to="rocksdb", form=1) == ""


def test_what_is_left_out_stays_as_it_is() -> None:
    assert target_of(of(5, "rocksdb", 1), count=3) == Target(3, "rocksdb", 1)
    assert target_of(of(5), to="rocksdb") == Target(5, "rocksdb", 2)
    assert target_of(of(5, "rocksdb", 2), to="hdfs", count=9) == Target(9, "hdfs", 1)
    assert str(Target(1, "hdfs", 1)) == "1 partition in HDFS-backed files, format 1"


def test_what_is_so_already_is_refused() -> None:
    assert "already in 5 partitions in HDFS-backed files, format 1" in why(of(5), count=5)
    assert "already in 5 partitions in RocksDB, format 2" in why(of(5, "rocksdb", 2), to="rocksdb")
    assert "already" in why(of(1, key=()), count=1)


def test_hdfs_backed_files_have_one_format() -> None:
    assert "have format 1 only: leave --format out" in why(of(5, "rocksdb", 2), to="hdfs", form=2)


def test_state_without_keys_stays_in_its_partition() -> None:
    assert "has no keys" in why(of(5, key=()), count=3)
    assert "has no keys" in why(of(5, key=()), to="rocksdb")
    assert why(of(1, key=()), to="rocksdb") == ""


@pytest.mark.parametrize(
    ("operators", "conf", "said"),
    [
        (PROCESSOR, {}, "transformWithState keeps its state only in RocksDB"),
        (JOIN, {JOIN_FORMAT: "3"}, "its join has .*=3, which only RocksDB can keep"),
        (None, {ENCODING: "avro"}, "its state has .*=avro, which only RocksDB can keep"),
    ],
)
def test_some_state_needs_rocksdb(
    operators: Mapping[str, Sequence[str]] | None, conf: dict[str, str], said: str
) -> None:
    checkpoint = of(5, "rocksdb", 2, operators, conf=conf)
    assert re.match(said, why(checkpoint, to="hdfs"))
    assert why(checkpoint, count=3) == ""


def test_state_in_another_format_needs_none() -> None:
    assert why(of(5, "rocksdb", 2, JOIN, conf={JOIN_FORMAT: "2"}), to="hdfs") == ""
    assert why(of(5, "rocksdb", 2, conf={ENCODING: "unsaferow"}), to="hdfs") == ""


def test_groups_in_format_1_stay_out_of_rocksdb() -> None:
    checkpoint = of(operators=GROUPS, conf={GROUPS_FORMAT: "1"})
    assert "whose timeouts RocksDB refuses" in why(checkpoint, to="rocksdb")
    assert why(checkpoint, count=3) == ""
    assert why(of(operators=GROUPS, conf={GROUPS_FORMAT: "2"}), to="rocksdb") == ""


def test_another_provider_is_left_alone() -> None:
    checkpoint = of(5, "org.example.MyProvider")
    assert "its state is kept by org.example.MyProvider, and only" in why(checkpoint, count=3)
    assert unreadable(checkpoint) is not None


def test_unknown_operators_are_left_alone() -> None:
    assert "the whole state of its operator globalLimit" in why(of(operators={"globalLimit": ["default"]}))


def test_operators_without_names_are_those_of_an_older_spark() -> None:
    made = files(conf={})
    del made.files["state/0/_metadata/metadata"]
    assert why(read_checkpoint(made, WHERE), count=3) == ""


def test_a_query_without_state_has_nothing_to_change() -> None:
    made = files()
    made.files = {path: data for path, data in made.files.items() if not path.startswith("state/")}
    assert "has no state" in (unchangeable(read_checkpoint(made, WHERE)) or "")


def test_a_started_batch_has_to_be_committed_before_state_gets_format_1() -> None:
    for provider, form in (("hdfs", 1), ("rocksdb", 1), ("rocksdb", 2)):
        made = files(5, provider, form)
        made.files["offsets/2"] = offsets(SPARK_4_2, 2_000, ("2",))
        found = read_checkpoint(made, WHERE)
        assert found.has_begun
        assert why(found, to="rocksdb", count=3) == ""
        assert "batch 2 is started and not committed" in why(found, to="hdfs", count=3)
        assert "batch 2 is started and not committed" in why(found, to="rocksdb", form=1, count=3)
        made.files["offsets/3"] = made.files["offsets/2"]
        found = read_checkpoint(made, WHERE)
        assert "batches 2 to 3 are started and not committed" in why(found, to="rocksdb", count=3)
        assert unreadable(found) is None


def test_a_first_batch_that_is_not_committed_has_no_state_yet() -> None:
    made = files()
    del made.files["commits/0"], made.files["commits/1"]
    assert "no committed batch" in (unchangeable(read_checkpoint(made, WHERE)) or "")


def test_a_change_that_was_cut_short_is_no_obstacle() -> None:
    made = files()
    made.files[".spark-elastic-rewrite/offsets/2"] = b""
    assert why(read_checkpoint(made, WHERE), count=3) == ""
