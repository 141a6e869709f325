"""Decompress an event log as a stream.

The first bytes of a file say how it is compressed, whatever its name is. Spark writes zstd as any other
program does, but LZ4, LZF and Snappy in formats of the Java libraries that it uses: blocks, each with its own
header, of which a few are in memory at a time. A log that is being written ends in the middle of a block;
what comes before that is read.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any


class CodecError(Exception):
    """A log cannot be decompressed; the message says why, and what to type."""


_CHUNK = 1 << 20
_MOST_BLOCK = 64 << 20
"""Spark's own blocks have 32 KiB to a few MiB; a header with more is damaged."""


def decompressed(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the contents of a file in pieces, decompressed if it is compressed. Raises CodecError."""
    begin = file.read(_LONGEST)
    for magic, read in _READERS.items():
        if begin.startswith(magic):
            return read(_Rejoined(begin, file))
    for magic, name in _OTHERS.items():
        if begin.startswith(magic):
            raise CodecError(
                f"is {name}, which Spark does not write; allowed are zstd, lz4, snappy, lzf and gzip as "
                "Spark writes them: decompress it first"
            )
    return _plain(_Rejoined(begin, file))


class _Rejoined:
    """A file whose first bytes have been read, from its beginning."""

    def __init__(self, begin: bytes, file: IO[bytes]) -> None:
        self._begin, self._file = begin, file

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, fewer only at the end."""
        if size < 0:
            size = _CHUNK
        piece, self._begin = self._begin[:size], self._begin[size:]
        while len(piece) < size:
            more = self._file.read(size - len(piece))
            if not more:
                break
            piece += more
        return piece


def _plain(file: _Rejoined) -> Iterator[bytes]:
    while piece := file.read(_CHUNK):
        yield piece


def _gzip(file: _Rejoined) -> Iterator[bytes]:
    unpacked = gzip.GzipFile(fileobj=io.BufferedReader(_Raw(file)))
    try:
        while piece := unpacked.read1(_CHUNK):
            yield piece
    except EOFError:
        return
    except (OSError, zlib.error) as error:
        raise CodecError(f"is damaged gzip ({error}): copy the log again") from error


class _Raw(io.RawIOBase):
    """What `io.BufferedReader` reads from."""

    def __init__(self, file: _Rejoined) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _zstd(file: _Rejoined) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise _missing("zstd", "zstandard") from error
    # Spark ends a frame whenever it flushes, so a log has many.
    reader = zstandard.ZstdDecompressor().stream_reader(
        io.BufferedReader(_Raw(file)), read_across_frames=True
    )
    try:
        while piece := reader.read(_CHUNK):
            yield piece
    except zstandard.ZstdError as error:
        raise CodecError(f"is damaged zstd ({error}): copy the log again") from error


def _lz4(file: _Rejoined) -> Iterator[bytes]:
    """Read the blocks of lz4-java's `LZ4BlockOutputStream`."""
    header = struct.Struct("<8sBiiI")
    unpack = _block_codecs("lz4").lz4.decompress_block
    while len(begin := file.read(header.size)) == header.size:
        magic, token, packed, size, _ = header.unpack(begin)
        if magic != b"LZ4Block" or not (0 <= packed <= _MOST_BLOCK and 0 <= size <= _MOST_BLOCK):
            raise CodecError("is damaged lz4 (a block has no header): copy the log again")
        block = file.read(packed)
        if len(block) < packed:
            return
        if size:  # an empty block marks the end of one stream; another may follow
            yield block if token & 0xF0 == 0x10 else _unpacked("lz4", unpack, block, size)


def _snappy(file: _Rejoined) -> Iterator[bytes]:
    """Read the chunks of snappy-java's `SnappyOutputStream`."""
    unpack = _block_codecs("snappy").snappy.decompress_raw
    header = struct.Struct(">i")
    while len(begin := file.read(header.size)) == header.size:
        if begin == _SNAPPY[:4]:  # the start of a stream: the rest of its mark, and two versions
            file.read(len(_SNAPPY) - 4 + 8)
            continue
        (packed,) = header.unpack(begin)
        if not 0 <= packed <= _MOST_BLOCK:
            raise CodecError("is damaged snappy (a chunk has no length): copy the log again")
        block = file.read(packed)
        if len(block) < packed:
            return
        yield _unpacked("snappy", unpack, block)


def _block_codecs(name: str) -> Any:
    try:
        import cramjam
    except ImportError as error:
        raise _missing(name, "cramjam") from error
    return cramjam


def _missing(codec: str, package: str) -> CodecError:
    return CodecError(
        f"is compressed with {codec}, for which {package} is not installed: "
        "type `pip install 'spark-elastic[logs]'`"
    )


def _unpacked(name: str, unpack: Callable[..., Any], block: bytes, *size: int) -> bytes:
    try:
        return bytes(unpack(block, *size))
    except Exception as error:
        raise CodecError(f"is damaged {name} ({error}): copy the log again") from error


# ---- LZF, as the Java library compress-lzf writes it. It is a simple format, and no package with wheels for
# all Pythons reads it.


def _lzf(file: _Rejoined) -> Iterator[bytes]:
    while len(begin := file.read(5)) == 5:
        mark, kind, length = begin[:2], begin[2], int.from_bytes(begin[3:5], "big")
        if mark != b"ZV" or kind > 1:
            raise CodecError("is damaged lzf (a chunk has no header): copy the log again")
        size = int.from_bytes(file.read(2), "big") if kind else length
        block = file.read(length)
        if len(block) < length:
            return
        yield _unpacked("lzf", lzf_chunk, block, size) if kind else block


def lzf_chunk(block: bytes, size: int) -> bytes:
    """Decompress one chunk of LZF into `size` bytes. Raises ValueError if it is damaged."""
    out, place = bytearray(), 0
    while place < len(block):
        control = block[place]
        place += 1
        if control < 32:  # a run of literal bytes
            out += block[place : place + control + 1]
            place += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += block[place]
            place += 1
        start = len(out) - ((control & 31) << 8) - block[place] - 1
        place += 1
        if start < 0:
            raise ValueError("it refers to bytes before its start")
        length += 2
        if start + length <= len(out):
            out += out[start : start + length]
        else:  # the part to copy includes what is being copied
            pattern = out[start:]
            out += (pattern * (length // len(pattern) + 1))[:length]
    if len(out) != size:
        raise ValueError(f"it has {len(out)} bytes instead of {size}")
    return bytes(out)


_SNAPPY = b"\x82SNAPPY\x00"
_READERS: dict[bytes, Callable[[_Rejoined], Iterator[bytes]]] = {
    b"\x28\xb5\x2f\xfd": _zstd,
    b"LZ4Block": _lz4,
    _SNAPPY: _snappy,
    b"ZV": _lzf,
    b"\x1f\x8b": _gzip,
}
_OTHERS = {
    b"\x04\x22\x4d\x18": "an LZ4 frame",
    b"\xff\x06\x00\x00sNaPpY": "framed Snappy",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "a zip archive",
}
_LONGEST = max(map(len, (*_READERS, *_OTHERS)))
