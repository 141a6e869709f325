"""The jars of a PySpark: those of Spark itself, even of a release that Maven Central does not have."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from spark_elastic_tools.maven import cache_dir


def jars_of_pyspark(version: str) -> Path:
    """Return the folder of the jars, from the PySpark beside this Python, or from one that is fetched once.

    Raises CalledProcessError if pip cannot fetch it.
    """
    found = find_spec("pyspark")
    if found is not None and found.origin is not None and metadata.version("pyspark") == version:
        return Path(found.origin).parent / "jars"
    kept = cache_dir() / f"pyspark-{version}-jars"
    if not kept.is_dir():
        print(f"fetching PySpark {version} for its jars (more than 400 MB)", flush=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="pyspark-") as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", "--dest", folder, f"pyspark=={version}"], check=True)
            (archive,) = Path(folder).glob("pyspark-*.tar.gz")
            unpacked = Path(folder) / "jars"
            _unpack(archive, unpacked)
            unpacked.rename(kept)
    return kept


def _unpack(archive: Path, to: Path) -> None:
    """Extract the jars from a source distribution."""
    to.mkdir()
    with tarfile.open(archive) as packed:
        for member in packed:
            parts = Path(member.name).parts
            if member.isfile() and parts[1:3] == ("deps", "jars") and member.name.endswith(".jar"):
                jar = packed.extractfile(member)
                assert jar is not None  # it is a file
                with jar, (to / parts[-1]).open("wb") as file:
                    shutil.copyfileobj(jar, file)
