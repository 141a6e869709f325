"""Build wheel and source distribution, and tell whether they can be released.

usage: .venv/bin/python .ci/release_check.py  (make release-check brings the jars and the extra `release`)

What is built is in dist/, and what is said of it in dist/reports/: the software bill of materials (CycloneDX)
and the licences of all that `pip install spark-elastic[cli]` installs, and checksums. It needs pip's index.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
REPORTS = DIST / "reports"
# What init scripts take to every node of a cluster that starts.
MOST_BYTES = 3 << 20
OUR_PACKAGES = ("org/apache/spark/elastic/", "org/apache/spark/sql/elastic/")
# Words of the licences that may be installed beside code under the Apache License 2.0.
LICENCES = (
    "Apache",
    "MIT",
    "BSD",
    "ISC",
    "Python Software Foundation",
    "PSF",
    "Mozilla Public License 2.0",
    "MPL-2.0",
)


class ReleaseError(Exception):
    """It cannot be released like this; the text says what was found, and what to do."""


def main() -> int:
    """Run all checks, those after one that fails as well; return 1 if one has failed."""
    failed = 0
    for check in (built, complete, same_again, small, of_ours, well_formed, accounted_for):
        try:
            found = check()
        except ReleaseError as error:
            print(f"FAIL  {check.__name__}: {error}", flush=True)
            failed = 1
            if check is built:
                break
        else:
            print(f"ok    {check.__name__}: {found}", flush=True)
    return failed


def built() -> str:
    """Build both into dist/."""
    shutil.rmtree(DIST, ignore_errors=True)
    build(DIST, {})
    REPORTS.mkdir()
    sums = checksums(packages())
    (REPORTS / "SHA256SUMS").write_text("".join(f"{sum}  {name}\n" for name, sum in sums.items()))
    return ", ".join(f"{path.name} ({path.stat().st_size:,} bytes)" for path in packages())


def complete() -> str:
    """Check their descriptions, and what is in the wheel."""
    run("-m", "twine", "check", "--strict", *packages())
    run("-m", "check_wheel_contents", wheel())
    return "twine and check-wheel-contents find nothing to say"


def same_again() -> str:
    """Build both once more, elsewhere and under other circumstances: the bytes are the same."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"})
        compare(checksums(packages()), checksums(Path(folder).glob("spark_elastic-*")))
    return "a second build has the same bytes"


def small() -> str:
    """Check the size of the wheel."""
    return check_size(wheel().name, wheel().stat().st_size)


def of_ours() -> str:
    """Check that the jars have nothing of anybody else's: the bill of materials does not look into them."""
    return check_jars(wheel())


def well_formed() -> str:
    """Install the wheel as users do, and write the bill of materials of what is there then."""
    bill = REPORTS / "sbom.cdx.json"
    cyclonedx = ("-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml")
    form = ("--mc-type", "library", "--output-reproducible", "--validate", "--output-format", "JSON")
    installed(lambda python: run(*cyclonedx, *form, "--output-file", bill, python))
    names = [component["name"] for component in json.loads(bill.read_text())["components"]]
    return f"{bill.relative_to(ROOT)} names {len(names)} components"


def accounted_for() -> str:
    """Write the licences of all of it, and check them."""
    options = ("--from=mixed", "--with-urls", "--order=name", "--format=json")
    text = installed(lambda python: run("-m", "piplicenses", f"--python={python}", *options))
    found = json.loads(text)
    rows = [f"| {one['Name']} | {one['Version']} | {one['License']} | {one['URL']} |" for one in found]
    table = "\n".join(["| package | version | licence | where |", "|---|---|---|---|", *rows])
    (REPORTS / "licences.md").write_text(f"{table}\n", encoding="utf-8")
    return check_licences(found)


def check_size(name: str, size: int) -> str:
    """Return the size as a sentence. Raises ReleaseError if it is too large."""
    if size > MOST_BYTES:
        raise ReleaseError(
            f"{name} has {size:,} bytes, at most {MOST_BYTES:,} are wanted: nearly all of it is the jars"
        )
    return f"{name} has {size:,} of {MOST_BYTES:,} bytes"


def check_jars(wheel: Path) -> str:
    """Return how many jars a wheel has. Raises ReleaseError for one with classes that are not ours."""
    with zipfile.ZipFile(wheel) as archive:
        jars = [name for name in archive.namelist() if name.endswith(".jar")]
        for jar in jars:
            with zipfile.ZipFile(BytesIO(archive.read(jar))) as classes:
                others = [name for name in classes.namelist() if name.endswith(".class")]
                others = [name for name in others if not name.startswith(OUR_PACKAGES)]
            if others:
                raise ReleaseError(f"{jar} has {others[0]}: build the jars anew, without anything of others")
    if not jars:
        raise ReleaseError(f"{wheel.name} has no jar: type `make jars`")
    return f"{len(jars)} jars have our classes alone"


def check_licences(found: Sequence[Mapping[str, str]]) -> str:
    """Return how many packages there are. Raises ReleaseError if the licence of one is not among LICENCES."""
    others = [one for one in found if not any(word in one["License"] for word in LICENCES)]
    if others:
        named = ", ".join(f"{one['Name']} {one['Version']} ({one['License']})" for one in others)
        raise ReleaseError(f"{named}: find out whether it may be used, and add its licence, or do without it")
    return f"{len(found)} packages, all under {', '.join(LICENCES[:4])} and the like"


def compare(first: Mapping[str, str], second: Mapping[str, str]) -> None:
    """Raise ReleaseError if two builds differ."""
    differ = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    if differ:
        raise ReleaseError(
            f"a second build has another {', '.join(differ)}: look for times, paths, orders of sets"
        )


def build(folder: Path, environment: Mapping[str, str]) -> None:
    """Build both into a folder. Raises ReleaseError, such as for a jar that is missing."""
    stamp = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    run(
        *("-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", folder),
        environment={"SOURCE_DATE_EPOCH": stamp, **environment},
    )


def packages() -> list[Path]:
    """Return the wheel and the source distribution."""
    return sorted(path for path in DIST.glob("spark_elastic-*") if path.is_file())


def wheel() -> Path:
    """Return the wheel."""
    (found,) = DIST.glob("*.whl")
    return found


def checksums(paths: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 checksum of each file by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(paths)}


def installed(ask: Callable[[Path], str]) -> str:
    """Return what is found out of a Python into which the wheel, and nothing else, was installed."""
    with tempfile.TemporaryDirectory() as folder:
        run("-m", "venv", "--without-pip", folder)
        python = Path(folder) / "bin" / "python"
        run("-m", "pip", "--python", python, "install", "--quiet", f"{wheel()}[cli]")
        return ask(python)


def run(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run this Python and return what it prints. Raises ReleaseError with what it has said if it fails."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, capture_output=True, text=True
    )
    if done.returncode != 0:
        said = "\n".join(part.strip() for part in (done.stdout, done.stderr) if part.strip())
        raise ReleaseError(f"{' '.join(command[1:4])} fails:\n{said}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
