"""Tests of the files of a checkpoint, in the forms that Spark writes."""

from __future__ import annotations

import struct

import pytest

from spark_elastic_tools.checkpoint.logs import (
    FormatError,
    has_key,
    parse_commit,
    parse_offsets,
    parse_operator,
    written_by,
)
from tests.unit.tools.checkpoint.stand_ins import commit, offsets, operator, schema

PRUNE = "sql.optimizer.pruneFiltersCanPruneStreamingSubplan"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"


def test_offsets_have_settings_time_and_a_line_for_each_source() -> None:
    found = parse_offsets(offsets({"a": "1"}, 17, ('{"logOffset":3}', "-")))
    assert (found.conf, found.timestamp_ms, found.sources) == ({"a": "1"}, 17, ('{"logOffset":3}', "-"))


def test_offsets_of_an_old_spark_have_no_settings() -> None:
    assert parse_offsets(b"v1\n\n3").conf == {}


def test_a_later_version_of_offsets_names_its_sources() -> None:
    assert parse_offsets(offsets({}).replace(b"v1", b"v2")).sources == ('{"logOffset":1}',)


@pytest.mark.parametrize("data", [b"", b"1\n{}", b"v1\nnonsense", b"v1\n[1]", b"\xff\xfe"])
def test_another_form_is_an_error(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_offsets(data)


def test_a_commit_with_ids_is_of_format_2() -> None:
    assert parse_commit(commit(1)) == 1
    assert parse_commit(commit(2)) == 2
    # What Spark writes without state, with the format set.
    assert parse_commit(b'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}') == 1
    assert parse_commit(b"v1\n{}") == 1


def test_an_operator_has_its_name_and_stores() -> None:
    found = parse_operator(operator(1, "symmetricHashJoin", "left", "right"))
    assert (found.id, found.name, found.stores) == (1, "symmetricHashJoin", ("left", "right"))
    with pytest.raises(FormatError, match="stateStoreInfo"):
        parse_operator(b'v1\n{"operatorInfo":{"operatorId":0,"operatorName":"dedupe"}}')


def test_a_key_has_fields_that_can_differ() -> None:
    assert has_key(schema("integer", "void"))
    assert not has_key(schema())
    assert not has_key(schema("void"))


def test_schemas_of_other_versions_are_read() -> None:
    text = b'{"type":"struct","fields":[]}'
    assert not has_key(b"\0\2v1" + struct.pack(">H", len(text)) + text)
    family = struct.pack(">iH", 1, 5) + b"count" + struct.pack(">h", 0)
    assert has_key(b"\0\2v3" + family + schema("long")[4:])
    with pytest.raises(FormatError, match="unknown form"):
        has_key(b"\0\2v2\0")


@pytest.mark.parametrize(
    ("keys", "spark"),
    [
        ([], "before 3.2"),
        (["spark.sql.streaming.stateStore.rocksdb.formatVersion"], "3.2.0 or 3.2.1"),
        (["spark.sql.streaming.statefulOperator.useStrictDistribution"], "3.2.2 to 3.5.3"),
        ([f"spark.databricks.{PRUNE}"], "3.5.4"),
        ([f"spark.{PRUNE}"], "3.5.5 or a later 3.5"),
        ([f"spark.{PRUNE}", ENCODING], "4.0 or 4.1"),
        ([ENCODING, "spark.sql.streaming.stateStore.rowChecksum.enabled"], "4.2"),
    ],
)
def test_the_newest_setting_tells_the_spark(keys: list[str], spark: str) -> None:
    assert written_by(dict.fromkeys(keys, "x")) == f"Spark {spark}"
