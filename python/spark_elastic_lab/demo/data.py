"""TPC-H input, made by tpchgen-cli."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import attrs


class DataFailure(Exception):
    """The input could not be made."""


@attrs.frozen(kw_only=True)
class Tables:
    """The generated files: `orders` whole, `lineitem` in parts by order key."""

    orders: Path
    lineitem: tuple[Path, ...]


def generator() -> str | None:
    """Return the tpchgen-cli beside this Python or on the PATH, None if there is none."""
    return shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) or shutil.which("tpchgen-cli")


def generate(folder: Path, *, scale: float, parts: int, lineitem_as: str = "parquet") -> Tables:
    """Write both tables at `scale` (1 = 1 GB), lineitem in so many files, parquet or csv.

    Raises DataFailure.
    """
    program = generator()
    if program is None:
        raise DataFailure("tpchgen-cli is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    orders = ["parquet", "--tables", "orders"]
    lineitem = [lineitem_as, "--tables", "lineitem", "--parts", str(parts)]
    for arguments in (orders, lineitem):
        command = [program, *arguments, "-s", str(scale), "--output-dir", str(folder)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise DataFailure(f"tpchgen-cli failed: {result.stderr.strip()}")
    return Tables(
        orders=folder / "orders.parquet",
        lineitem=in_order(list((folder / "lineitem").glob(f"*.{lineitem_as}"))),
    )


def in_order(files: list[Path]) -> tuple[Path, ...]:
    """Sort `table.N.…` files by their number, which is the order of their keys."""
    return tuple(sorted(files, key=lambda file: int(re.findall(r"\d+", file.name)[-1])))
