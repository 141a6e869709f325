"""Tests of what is read from checkpoints that earlier Sparks have written, with every stateful operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import frozen

from integration.old_checkpoints.archives import Archive, archives
from spark_elastic_tools.checkpoint.facts import read_checkpoint
from spark_elastic_tools.checkpoint.judge import unchangeable

pytestmark = pytest.mark.long

WITHOUT_KEYS = ("aggregation_without_keys", "limit")


@frozen
class LocalFiles:
    folder: Path

    def names(self, folder: str) -> Sequence[str]:
        there = self.folder / folder
        return [path.name for path in there.iterdir()] if there.is_dir() else []

    def read(self, path: str) -> bytes | None:
        file = self.folder / path
        return file.read_bytes() if file.is_file() else None

    def changed_ms(self, path: str) -> int:
        return int((self.folder / path).stat().st_mtime * 1000)


@pytest.mark.parametrize("archive", archives(), ids=lambda archive: archive.file.name)
def test_the_checkpoints_of_an_earlier_spark_are_understood(archive: Archive, tmp_path: Path) -> None:
    archive.unpack(tmp_path)
    minor = archive.spark.rpartition(".")[0]
    for name in archive.queries:
        found = read_checkpoint(LocalFiles(tmp_path / name), name)
        assert minor in found.written_by, name
        assert (found.provider, found.format, found.partitions) == (archive.store, 1, 4), name
        assert found.committed is not None, name
        assert (found.started, found.is_interrupted) == (None, False), name
        assert found.operators, name
        assert all((operator.name is None) == (minor == "3.5") for operator in found.operators), name
        keyless = any(operator.keyed is False for operator in found.operators)
        assert keyless == (name in WITHOUT_KEYS), name
        reason = unchangeable(found)
        assert (reason is None) == (name != "limit" or minor == "3.5"), name
