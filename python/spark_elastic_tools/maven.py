"""Fetch jars from Maven Central with Apache Ivy, which pyspark ships: no Maven, sbt or curl needed."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import quoteattr

from spark_elastic_tools.java import find_java

# ---- The folder for downloads, outside any checkout or installation.


def cache_dir() -> Path:
    """Return $SPARK_ELASTIC_CACHE, or spark-elastic in the user's cache folder if that is unset."""
    chosen = os.environ.get("SPARK_ELASTIC_CACHE")
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "spark-elastic").absolute()


@contextmanager
def locked(name: str) -> Iterator[Path]:
    """Hold the cache's lock of that name (one process at a time) and yield the cache's folder."""
    folder = cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


class FetchError(Exception):
    """Artifacts could not be fetched; the message names them and holds Ivy's output."""


class NotPublishedError(FetchError):
    """The repository answered that it has no such artifacts."""


def fetch(*coordinates: str, transitive: bool) -> list[Path]:
    """Return the jars of artifacts `group:name:version[:classifier]`; download those that are missing.

    With `transitive`, include their runtime dependencies. The jars are in one folder of the cache, which
    holds nothing else. Raises FetchError if a jar cannot be fetched, NotPublishedError if the repository does
    not have it, NoJavaError if there is no usable Java.
    """
    wanted = "\n".join([*sorted(coordinates), f"transitive={transitive}"])
    with locked("artifacts") as cache:
        folder = cache / "artifacts" / hashlib.sha256(wanted.encode()).hexdigest()[:16]
        if not folder.is_dir():
            folder.parent.mkdir(exist_ok=True)
            # To stderr: stdout may be read by a program.
            print(f"spark-elastic: {_told(coordinates, transitive)}", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="part-") as part:
                jars = _retrieve(coordinates, transitive, cache / "ivy", Path(part))
                # Renamed when complete, so that a folder that exists is always complete.
                jars.rename(folder)
    return sorted(folder.glob("*.jar"))


def _told(coordinates: tuple[str, ...], transitive: bool) -> str:
    """Describe the download, as it can take minutes."""
    first, *others = (coordinate.split(":", 1)[1] for coordinate in coordinates)
    more = f" and {len(others)} more" if others else ""
    needs = ", and what it needs" if transitive else ""
    return f"fetching {first}{more} from Maven Central{needs}; once, seconds to a few minutes"


def _retrieve(coordinates: tuple[str, ...], transitive: bool, ivy_home: Path, part: Path) -> Path:
    jars = part / "jars"
    jars.mkdir()
    request = part / "ivy.xml"
    request.write_text(_ivy_xml(coordinates, transitive), encoding="utf-8")
    pattern = f"{jars}/[artifact]-[revision](-[classifier]).[ext]"
    command = [find_java(), f"-Divy.default.ivy.user.dir={ivy_home}", "-jar", str(_ivy_jar())]
    command += ["-ivy", str(request), "-confs", "default", "-types", "jar", "bundle", "test-jar"]
    # Without -verbose, Ivy does not say whether an artifact is missing or its repository did not answer.
    command += ["-retrieve", pattern, "-verbose"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=part)
    missing = [c for c in coordinates if not (jars / _jar_name(c)).is_file()]
    if run.returncode != 0 or missing:
        summary = run.stdout.rpartition(":: problems summary ::")[2]
        shown = "\n".join(line for line in summary.splitlines() if line.strip())[-3000:]
        what = ", ".join(missing or coordinates)
        absent = missing and all(_is_absent(coordinate, run.stdout) for coordinate in missing)
        kind = NotPublishedError if absent else FetchError
        raise kind(f"cannot fetch {what} (not there, or no network)\n{shown}")
    return jars


def _is_absent(coordinate: str, said: str) -> bool:
    """Return whether Ivy reported the jar as not found; no answer, or another error, proves nothing."""
    jar = re.escape(_jar_name(coordinate))
    return re.search(rf"^CLIENT ERROR: Not Found url=\S+/{jar}$", said, re.MULTILINE) is not None


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FetchError("pyspark is not installed beside this Python: type `pip install pyspark`")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise FetchError(f"{Path(spec.origin).parent} has no jars/ivy-*.jar, which pyspark usually ships")
    return found[-1]


def _jar_name(coordinate: str) -> str:
    _, name, version, *classifier = coordinate.split(":")
    return "-".join([name, version, *classifier]) + ".jar"


def _ivy_xml(coordinates: tuple[str, ...], transitive: bool) -> str:
    dependencies = "\n".join(_dependency(coordinate, transitive) for coordinate in coordinates)
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="org.apache.spark.elastic" module="request"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _dependency(coordinate: str, transitive: bool) -> str:
    group, name, version, *classifier = coordinate.split(":")
    # A classified artifact (such as :tests) must be named; without a classifier, the module's own jar is
    # meant.
    artifact = "".join(
        f"<artifact name={quoteattr(name)} type='jar' ext='jar' m:classifier={quoteattr(c)}/>"
        for c in classifier
    )
    return (
        f"    <dependency org={quoteattr(group)} name={quoteattr(name)} rev={quoteattr(version)}"
        f" transitive='{str(transitive).lower()}' conf='default->default'>{artifact}</dependency>"
    )
