"""Build the wheel, the source distribution and the Maven repository, and check whether they can be released.

usage: .venv/bin/python .ci/release_check.py  (make release-check brings the jars and the extra `release`)

The files are built in dist/, with reports on them in dist/reports/: checksums, licences, and software bills
of materials (CycloneDX) of what `pip install spark-elastic[cli]` installs and of what the jars in dist/maven
carry. The check needs pip's index.
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
MAVEN = DIST / "maven"
REPORTS = DIST / "reports"
# For each Spark that the wheel has a jar for: init scripts copy it to every node of a starting cluster.
MOST_BYTES = 800 << 10
# One jar for Maven, with the policy engine in it.
MOST_BYTES_OF_A_JAR = 2 << 20
# The last one is the part of Scala 2.13's library that Spark's own packages use, in the jar for 2.12.
OURS = ("org/apache/spark/elastic/", "org/apache/spark/sql/elastic/", "org/apache/spark/Scala213")
# Words in licences that may be installed beside code under the Apache License 2.0.
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
    """The release has a problem; the text says what was found, and what to do."""


def main() -> int:
    """Run all checks, and continue if one fails, unless it is a build; return 1 if one has failed."""
    failed = 0
    wheel_and_sdist = (built, complete, same_again, small, of_ours, well_formed, accounted_for)
    for check in (*wheel_and_sdist, maven_built, maven_same_again, maven_small, maven_accounted_for):
        try:
            found = check()
        except ReleaseError as error:
            print(f"FAIL  {check.__name__}: {error}", flush=True)
            failed = 1
            if check in (built, maven_built):
                break
        else:
            print(f"ok    {check.__name__}: {found}", flush=True)
    return failed


def built() -> str:
    """Build the wheel and the source distribution into dist/."""
    shutil.rmtree(DIST, ignore_errors=True)
    build(DIST, {})
    REPORTS.mkdir()
    sums = checksums(packages())
    (REPORTS / "SHA256SUMS").write_text("".join(f"{sum}  {name}\n" for name, sum in sums.items()))
    return ", ".join(f"{path.name} ({path.stat().st_size:,} bytes)" for path in packages())


def complete() -> str:
    """Check the packages' descriptions, and the content of the wheel."""
    run("-m", "twine", "check", "--strict", *packages())
    run("-m", "check_wheel_contents", wheel())
    return "twine and check-wheel-contents find nothing to say"


def same_again() -> str:
    """Check that a second build, elsewhere and under other conditions, has the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"})
        compare(checksums(packages()), checksums(Path(folder).glob("spark_elastic-*")))
    return "a second build has the same bytes"


def small() -> str:
    """Check the size of the wheel."""
    return check_size(wheel().name, wheel().stat().st_size, MOST_BYTES * len(jars_in(wheel())))


def of_ours() -> str:
    """Check that the jars contain no foreign classes, since the bill of materials does not look into them."""
    return check_jars(wheel())


def well_formed() -> str:
    """Install the wheel as users do, and write the bill of materials of the result."""
    bill = REPORTS / "sbom.cdx.json"
    cyclonedx = ("-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml")
    form = ("--mc-type", "library", "--output-reproducible", "--validate", "--output-format", "JSON")
    installed(lambda python: run(*cyclonedx, *form, "--output-file", bill, python))
    names = [component["name"] for component in json.loads(bill.read_text())["components"]]
    return f"{bill.relative_to(ROOT)} names {len(names)} components"


def accounted_for() -> str:
    """Write the licences of all installed packages, and check them."""
    options = ("--from=mixed", "--with-urls", "--order=name", "--format=json")
    text = installed(lambda python: run("-m", "piplicenses", f"--python={python}", *options))
    found = json.loads(text)
    rows = [f"| {one['Name']} | {one['Version']} | {one['License']} | {one['URL']} |" for one in found]
    table = "\n".join(["| package | version | licence | where |", "|---|---|---|---|", *rows])
    (REPORTS / "licences.md").write_text(f"{table}\n", encoding="utf-8")
    return check_licences(found)


def maven_built() -> str:
    """Build the Maven repository into dist/maven."""
    said = write_maven(MAVEN, {})
    found = f"{len(maven_jars(MAVEN))} jars for Spark, each with sources, documentation and description"
    return "; ".join([found, *(line for line in said.splitlines() if line.startswith("Maven Central"))])


def maven_same_again() -> str:
    """Check that a second build, elsewhere and under other conditions, has the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        write_maven(Path(folder), {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"})
        compare(checksums(files_of(MAVEN)), checksums(files_of(Path(folder))))
    return "a second build has the same bytes"


def maven_small() -> str:
    """Check the size of each jar."""
    for jar in maven_jars(MAVEN):
        check_size(jar.name, jar.stat().st_size, MOST_BYTES_OF_A_JAR)
    return f"each jar has less than {MOST_BYTES_OF_A_JAR:,} bytes"


def maven_accounted_for() -> str:
    """Write the bill of materials of what the jars carry, and check that all of it has a licence."""
    bill = REPORTS / "sbom-maven.cdx.json"
    cyclonedx = ("-m", "cyclonedx_py", "requirements", "--pyproject", ROOT / "pyproject.toml")
    form = ("--mc-type", "library", "--output-reproducible", "--validate", "--output-format", "JSON")
    run(*cyclonedx, *form, "--output-file", bill, ROOT / "jvm-shim" / "engine-requirements.txt")
    pinned = {
        component["name"].lower(): component["version"]
        for component in json.loads(bill.read_text())["components"]
    }
    for jar in maven_jars(MAVEN):
        check_carried(jar, pinned)
    return f"each jar has {len(pinned)} packages of others, with their licences"


def check_carried(jar: Path, pinned: Mapping[str, str]) -> None:
    """Raise ReleaseError unless a jar has exactly the pinned packages, with licences compatible with ours."""
    with zipfile.ZipFile(jar) as archive:
        names = archive.namelist()
        notice = archive.read("META-INF/NOTICE").decode()
    # As written by engine.notice: two blanks, then name and version, licence and address.
    rows = [line.strip().split(", ") for line in notice.splitlines() if line.startswith("  ")]
    found = [{"Name": what.split()[0], "Version": what.split()[1], "License": lic} for what, lic, _ in rows]
    check_licences(found)
    carried = {one["Name"].lower(): one["Version"] for one in found}
    if carried != pinned:
        raise ReleaseError(f"{jar.name} carries {carried}, and {pinned} is pinned: type `make maven`")
    for package, version in carried.items():
        home = f"policy-engine/{package}-{version}.dist-info/"
        if not any(name.lower().startswith(home) and "licen" in name.lower() for name in names):
            raise ReleaseError(f"{jar.name} has no licence of {package}: see what {home} has in its wheel")


def write_maven(folder: Path, environment: Mapping[str, str]) -> str:
    """Write a Maven repository into a folder; return the output of that. Raises ReleaseError."""
    return run(ROOT / "jvm-shim" / "maven_repository.py", folder, environment=environment)


def maven_jars(folder: Path) -> list[Path]:
    """Return the jars for Spark in a Maven repository."""
    return sorted(pom.with_suffix(".jar") for pom in folder.rglob("*.pom"))


def files_of(folder: Path) -> list[Path]:
    """Return all files below a folder; in a Maven repository no two have the same name."""
    return [path for path in folder.rglob("*") if path.is_file()]


def check_size(name: str, size: int, most: int) -> str:
    """Return a sentence with the size. Raises ReleaseError if it is too large."""
    if size > most:
        raise ReleaseError(f"{name} has {size:,} bytes, at most {most:,} are wanted: look for what is in it")
    return f"{name} has {size:,} of {most:,} bytes"


def check_jars(wheel: Path) -> str:
    """Return a sentence with the number of jars in a wheel. Raises ReleaseError for foreign classes."""
    with zipfile.ZipFile(wheel) as archive:
        jars = jars_in(wheel)
        for jar in jars:
            with zipfile.ZipFile(BytesIO(archive.read(jar))) as classes:
                others = [name for name in classes.namelist() if name.endswith(".class")]
                others = [name for name in others if not name.startswith(OURS)]
            if others:
                raise ReleaseError(f"{jar} has {others[0]}: build the jars anew, without anything of others")
    if not jars:
        raise ReleaseError(f"{wheel.name} has no jar: type `make jars`")
    return f"{len(jars)} jars have our classes alone"


def jars_in(wheel: Path) -> list[str]:
    """Return the names of the jars in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if name.endswith(".jar")]


def check_licences(found: Sequence[Mapping[str, str]]) -> str:
    """Return a sentence with the number of packages. Raises ReleaseError for a licence not in LICENCES."""
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
    """Build both into a folder. Raises ReleaseError, for example if a jar is missing."""
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
    """Return the SHA-256 checksum of each file, by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(paths)}


def installed(ask: Callable[[Path], str]) -> str:
    """Return what `ask` finds in a Python where only the wheel and its dependencies are installed."""
    with tempfile.TemporaryDirectory() as folder:
        run("-m", "venv", "--without-pip", folder)
        python = Path(folder) / "bin" / "python"
        run("-m", "pip", "--python", python, "install", "--quiet", f"{wheel()}[cli]")
        return ask(python)


def run(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run this Python and return its output. Raises ReleaseError with the output if it fails."""
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
