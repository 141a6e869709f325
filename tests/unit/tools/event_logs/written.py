"""Logs as Spark's Java libraries write them, with blocks compressed by the libraries that the reader uses."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Mapping

import cramjam
import zstandard

_BLOCK = 700


def _blocks(text: bytes) -> list[bytes]:
    return [text[begin : begin + _BLOCK] for begin in range(0, len(text), _BLOCK)]


def zstd(text: bytes) -> bytes:
    """One frame for each flush, as the writer of event logs flushes."""
    return b"".join(zstandard.ZstdCompressor().compress(block) for block in _blocks(text))


def lz4(text: bytes) -> bytes:
    """Blocks of lz4-java: every other one is stored, and an empty one ends the stream."""
    found = b""
    for number, block in enumerate(_blocks(text)):
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False)) if number % 2 else block
        token = (0x20 if number % 2 else 0x10) | 5
        found += struct.pack("<8sBiiI", b"LZ4Block", token, len(packed), len(block), 0) + packed
    return found + struct.pack("<8sBiiI", b"LZ4Block", 0x15, 0, 0, 0)


def snappy(text: bytes) -> bytes:
    """Chunks of snappy-java, in two streams, since each writer begins one."""
    begin = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    chunks = [bytes(cramjam.snappy.compress_raw(block)) for block in _blocks(text)]
    framed = [struct.pack(">i", len(chunk)) + chunk for chunk in chunks]
    return begin + b"".join(framed[:2]) + begin + b"".join(framed[2:])


def lzf(text: bytes) -> bytes:
    """Chunks of compress-lzf that are stored; test_codecs.py has compressed ones."""
    return b"".join(b"ZV\x00" + struct.pack(">H", len(block)) + block for block in _blocks(text))


WRITERS: Mapping[str, Callable[[bytes], bytes]] = {
    "zstd": zstd,
    "lz4": lz4,
    "snappy": snappy,
    "lzf": lzf,
    "gzip": gzip.compress,
    "plain": bytes,
}
