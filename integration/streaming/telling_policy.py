"""The real policy, which reveals its secret to a test by writing it to the given file."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from spark_elastic.gateway import handshake

_read = handshake.read_handshake


def _tell(stdin: int) -> handshake.Handshake:
    told = _read(stdin)
    Path(sys.argv[1]).write_text(told.token)
    return told


handshake.read_handshake = _tell
runpy.run_module("spark_elastic.runtime", run_name="__main__")
