"""Tests that a start with the plugin converts checkpoints which plain Sparks have written, or leaves them.

The output is that of plain Spark from the same checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.batch.plans import PATIENT
from integration.old_checkpoints.archives import Archive, archives
from integration.old_checkpoints.running import PARTITIONS, Batch
from integration.selected import selected
from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import PLUGIN
from integration.streaming.test_checkpoints_of_other_sparks import (
    MISCOUNTED,
    REFUSED,
    Copies,
    copies_in,
    newest_settings,
    uncounted,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not MOVES_STATE, reason="this Spark cannot convert a checkpoint"),
]

# They get as many partitions.
SLOTS = 3
CONF = {
    **PLUGIN,
    **PATIENT,
    "spark.elastic.stateStore.convert": "atStart",
    "spark.master": f"local[{SLOTS}]",
}
FIRST = ("3.5-aggregation_update", "3.5-join_left_outer_format_2")


# Each checkpoint in Spark's own store.
CASES: dict[str, tuple[Archive, str]] = {
    f"{archive.spark.rsplit('.', 1)[0]}-{query}": (archive, query)
    for archive in archives()
    if archive.store == "hdfs"
    for query in archive.queries
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, list[Batch]]:
    with copies_in(tmp_path_factory.mktemp("plain"), {}) as copies:
        return {case: copies.plain(*CASES[case]) for case in selected(request, "case")}


@pytest.fixture(scope="module")
def elastic(plain: dict[str, list[Batch]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    with copies_in(tmp_path_factory.mktemp("elastic"), CONF) as copies:
        yield copies


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in FIRST else pytest.mark.slow) for case in CASES]
)
def test_its_output_is_that_of_plain_spark(plain: dict[str, list[Batch]], elastic: Copies, case: str) -> None:
    (archive, query), expected = CASES[case], plain[case]
    assert any(batch.emitted for batch in expected)
    checkpoint, found = elastic.go_on(archive, query, {})
    if query in MISCOUNTED:
        found, expected = uncounted(found), uncounted(expected)
    assert found == expected
    conf = newest_settings(checkpoint)
    store = "HDFSBacked" if query in REFUSED else "RocksDB"
    assert conf["spark.sql.streaming.stateStore.providerClass"].endswith(f".{store}StateStoreProvider")
    assert conf["spark.sql.shuffle.partitions"] == str(PARTITIONS if query in REFUSED else SLOTS)
