"""Tests of what is read from a checkpoint's metadata."""

from __future__ import annotations

import pytest

from spark_elastic_tools.checkpoint.facts import NoCheckpointError, read_checkpoint
from spark_elastic_tools.checkpoint.logs import PROVIDER, SHUFFLE_PARTITIONS
from tests.unit.tools.checkpoint.stand_ins import (
    CLASSES,
    SPARK_4_2,
    WHERE,
    MemoryFiles,
    files,
    offsets,
    operator,
    schema,
)

CONF = {**SPARK_4_2, SHUFFLE_PARTITIONS: "5", PROVIDER: CLASSES["hdfs"]}
JOINED = ("left-keyToNumValues", "right-keyToNumValues")


def test_a_checkpoint_is_read_as_of_its_last_committed_batch() -> None:
    found = read_checkpoint(files(7, "rocksdb", 2), WHERE)
    assert (found.committed, found.started, found.partitions) == (1, None, 7)
    assert (found.provider, found.format, found.store) == ("rocksdb", 2, "RocksDB, format 2")
    assert [(one.id, one.name, one.keyed) for one in found.operators] == [(0, "stateStoreSave", True)]
    assert found.stores == ((0, "default"),)
    assert found.written_by == "Spark 4.2"


def test_a_batch_of_its_query_is_started() -> None:
    made = files()
    made.files["offsets/2"] = offsets(CONF, 2_000, ("2",))
    found = read_checkpoint(made, WHERE)
    assert (found.committed, found.started, found.is_interrupted) == (1, 2, False)


def test_a_batch_without_data_is_no_change_of_state() -> None:
    made = files()
    made.files["offsets/2"] = offsets(CONF, 2_000, ("1",))
    assert not read_checkpoint(made, WHERE).is_interrupted


@pytest.mark.parametrize(
    "changed",
    [{SHUFFLE_PARTITIONS: "9"}, {PROVIDER: CLASSES["rocksdb"]}, {}],
    ids=["partitions", "provider", "format"],
)
def test_a_change_of_state_that_was_cut_short_is_known(changed: dict[str, str]) -> None:
    made = files()
    made.files["offsets/2"] = offsets({**CONF, **changed}, 1_001, ("1",))
    found = read_checkpoint(made, WHERE)
    assert (found.started, found.is_rewrite, found.is_interrupted) == (2, True, True)
    assert (found.partitions, found.provider) == (5, "hdfs")


def test_files_of_a_change_are_one_that_was_cut_short() -> None:
    made = files()
    made.files[".spark-elastic-rewrite/offsets/2"] = b""
    assert read_checkpoint(made, WHERE).is_interrupted


def test_an_undo_that_was_cut_short_is_known() -> None:
    made = files()
    made.files[".spark-elastic-original/undo"] = b"1"
    found = read_checkpoint(made, WHERE)
    assert (found.is_being_undone, found.is_interrupted) == (True, True)


def test_a_first_batch_that_is_not_committed_is_started() -> None:
    made = files(batches=1)
    del made.files["commits/0"]
    found = read_checkpoint(made, WHERE)
    assert (found.committed, found.started, found.is_interrupted) == (None, 0, False)


def test_files_of_other_names_are_no_entries() -> None:
    made = files()
    made.files["offsets/.2.1f0a.tmp"] = b""
    made.files["offsets/3.compact"] = b""
    assert read_checkpoint(made, WHERE).started is None


def test_an_older_spark_has_not_recorded_operators() -> None:
    made = files(conf={})
    del made.files["state/0/_metadata/metadata"]
    for store in JOINED:
        made.files[f"state/1/0/{store}/1.delta"] = b""
    made.files["state/1/0/_metadata/schema"] = b""
    first, second = read_checkpoint(made, WHERE).operators
    assert (first.name, first.stores, first.keyed) == (None, ("default",), True)
    assert (second.name, second.stores, second.keyed) == (None, JOINED, True)


def test_operators_without_keys_are_known() -> None:
    assert read_checkpoint(files(key=()), WHERE).operators[0].keyed is False
    assert read_checkpoint(files(key=("void",)), WHERE).operators[0].keyed is False
    made = files()
    del made.files["state/0/0/_metadata/schema"]
    assert read_checkpoint(made, WHERE).operators[0].keyed is None


def test_the_newest_description_of_an_operator_counts() -> None:
    made = files()
    made.files["state/0/_metadata/v2/0"] = operator(0, "old", "default")
    made.files["state/0/_metadata/v2/10"] = operator(0, "transformWithStateExec", "default")
    made.files["state/0/0/_metadata/schema"] = schema()
    (found,) = read_checkpoint(made, WHERE).operators
    assert (found.name, found.keyed) == ("transformWithStateExec", True)


def test_state_of_a_batch_that_says_little_has_spark_s_defaults() -> None:
    made = files()
    made.files["offsets/1"] = b"v1\n\n1"
    found = read_checkpoint(made, WHERE)
    assert (found.partitions, found.provider) == (200, "hdfs")


def test_a_folder_without_logs_is_no_checkpoint() -> None:
    with pytest.raises(NoCheckpointError, match=r"file:/checkpoint is no checkpoint: .* checkpointLocation"):
        read_checkpoint(MemoryFiles({"state/0/0/1.delta": b""}), WHERE)


def test_a_log_in_another_form_is_no_checkpoint() -> None:
    made = files()
    made.files["offsets/1"] = b"PK"
    with pytest.raises(NoCheckpointError, match="'PK' where Spark writes a version"):
        read_checkpoint(made, WHERE)
    del made.files["offsets/1"]
    made.files["offsets/2"] = made.files["offsets/0"]
    with pytest.raises(NoCheckpointError, match="no offsets of its last committed batch 1"):
        read_checkpoint(made, WHERE)


def test_what_is_kept_of_an_earlier_state_is_known() -> None:
    made = files(7, "rocksdb", 2, batches=3)
    made.files[".spark-elastic-original/note"] = f"1000\n1\n{CLASSES['hdfs']}\n1".encode()
    made.files[".spark-elastic-original/offsets/1"] = offsets(CONF)
    kept = read_checkpoint(made, WHERE).original
    assert kept is not None
    assert (kept.batch, kept.change, kept.partitions, kept.store) == (1, 2, 5, "HDFS-backed files, format 1")
    assert (kept.has_begun, kept.is_logged) == (False, True)
    made.files[".spark-elastic-original/offsets/2"] = offsets(CONF)
    del made.files["commits/1"], made.files["offsets/1"]
    kept = read_checkpoint(made, WHERE).original
    assert kept is not None
    assert (kept.has_begun, kept.is_logged) == (True, False)


def test_a_note_that_is_not_whole_is_none() -> None:
    made = files()
    made.files[".spark-elastic-original/note"] = b"1000\n1"
    assert read_checkpoint(made, WHERE).original is None
