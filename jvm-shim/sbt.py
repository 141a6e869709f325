"""Run sbt: the one on PATH, or else its launcher, fetched from Maven Central.

A fresh machine has only Python, Java and make. Ivy, which fetches the launcher, knows Maven Central and
verifies checksums.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from spark_elastic_tools.java import find_java
from spark_elastic_tools.maven import FetchError, cache_dir, fetch

LAUNCHER = "org.scala-sbt:sbt-launch:1.12.0"
LAUNCHER_SHA256 = "a4f78ef1afcf69bbbd0ddc69caf8bcaa04e643d526712d654417b232248932fb"

# No process of sbt may outlive the build, and no command may wait for input.
BATCH = ["-Dsbt.server.autostart=false", "-Dsbt.supershell=false", "-Dsbt.color=false", "-Dsbt.ci=true"]


def run_sbt(checkout: Path, properties: dict[str, str], *commands: str) -> None:
    """Run sbt commands in a checkout. Raises CalledProcessError if one fails."""
    options = [*BATCH, *(f"-D{name}={value}" for name, value in properties.items())]
    installed = shutil.which("sbt")
    command = [installed, *options] if installed else [*_launcher(), *options]
    environment = dict(os.environ)
    if not installed:
        environment["COURSIER_CACHE"] = str(cache_dir() / "coursier")
    subprocess.run([*command, *commands], cwd=checkout, env=environment, stdin=subprocess.DEVNULL, check=True)


def _launcher() -> list[str]:
    (jar,) = fetch(LAUNCHER, transitive=False)
    found = hashlib.sha256(jar.read_bytes()).hexdigest()
    if found != LAUNCHER_SHA256:
        raise FetchError(f"{jar} has SHA-256 {found}, expected {LAUNCHER_SHA256}: delete it and try again")
    home = cache_dir() / "sbt"
    places = [f"-Dsbt.boot.directory={home / 'boot'}", f"-Dsbt.global.base={home / 'global'}"]
    places += [f"-Dsbt.ivy.home={home / 'ivy'}"]
    return [find_java(), "-Xmx1g", "-Xss4m", *places, "-jar", str(jar)]
