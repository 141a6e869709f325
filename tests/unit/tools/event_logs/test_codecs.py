"""Tests that logs are decompressed as streams; integration/advice reads those that Spark has written."""

from __future__ import annotations

import io
import sys

import pytest

from spark_elastic_tools.event_logs.codecs import CodecError, decompressed, lzf_chunk
from tests.unit.tools.event_logs.written import WRITERS

TEXT = b"".join(b'{"Event":"SparkListenerTaskEnd","number":%d}\n' % number for number in range(200))


@pytest.mark.parametrize("codec", WRITERS)
def test_what_was_compressed_comes_back(codec: str) -> None:
    assert b"".join(decompressed(io.BytesIO(WRITERS[codec](TEXT)))) == TEXT


@pytest.mark.parametrize("codec", WRITERS)
def test_a_log_that_is_being_written_is_read_up_to_its_last_whole_block(codec: str) -> None:
    written = WRITERS[codec](TEXT)
    found = b"".join(decompressed(io.BytesIO(written[: len(written) * 2 // 3])))
    assert len(found) > len(TEXT) // 4
    assert TEXT.startswith(found)


@pytest.mark.parametrize("codec", WRITERS)
def test_an_empty_file_is_empty(codec: str) -> None:
    assert b"".join(decompressed(io.BytesIO(WRITERS[codec](b"")))) == b""
    assert b"".join(decompressed(io.BytesIO(b""))) == b""


@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy", "lzf", "gzip"])
def test_a_damaged_log_says_so(codec: str) -> None:
    written = bytearray(WRITERS[codec](TEXT))
    place = len(written) // 2
    written[place:] = b"\xff" * (len(written) - place)
    with pytest.raises(CodecError, match=rf"is damaged {codec} .*copy the log again"):
        b"".join(decompressed(io.BytesIO(bytes(written))))


@pytest.mark.parametrize(
    ("codec", "package"), [("zstd", "zstandard"), ("lz4", "cramjam"), ("snappy", "cramjam")]
)
def test_a_missing_library_says_what_to_install(
    codec: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        CodecError, match=rf"compressed with {codec}, for which {package} is not installed: .*logs"
    ):
        next(decompressed(io.BytesIO(WRITERS[codec](TEXT))))


@pytest.mark.parametrize(
    ("begin", "name"), [(b"BZh9", "bzip2"), (b"PK\x03\x04", "a zip"), (b"\x04\x22\x4d\x18", "an LZ4 frame")]
)
def test_what_spark_does_not_write_is_named(begin: bytes, name: str) -> None:
    with pytest.raises(CodecError, match=f"is {name}.*decompress it first"):
        next(decompressed(io.BytesIO(begin + b"rest")))


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (b"\x02abc", b"abc"),
        # "abc", then 4 bytes from 3 before: the copy includes what it writes.
        (b"\x02abc\x40\x02", b"abcabca"),
        # "a", then 9 + 11 bytes from 1 before.
        (b"\x00a\xe0\x0b\x00", b"a" * 21),
    ],
)
def test_lzf_copies_what_it_has_written(block: bytes, text: bytes) -> None:
    assert lzf_chunk(block, len(text)) == text


def test_damaged_lzf_is_refused() -> None:
    with pytest.raises(ValueError, match="before its start"):
        lzf_chunk(b"\x00a\x40\x05", 5)
    with pytest.raises(ValueError, match="3 bytes instead of 4"):
        lzf_chunk(b"\x02abc", 4)
