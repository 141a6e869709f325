"""Find the Java that everything runs on, and say what to install if there is none.

The Makefile runs this file by its path before anything is installed: import only the standard library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

OLDEST = 17
_DEBIAN = f"Debian: apt-get install openjdk-{OLDEST}"
_TO_BUILD = f"install a JDK {OLDEST} or later ({_DEBIAN}-jdk-headless) or set JAVA_HOME"
_TO_RUN = f"install Java {OLDEST} ({_DEBIAN}-jre-headless) or set JAVA_HOME"


class NoJavaError(Exception):
    """Java is missing or too old; the message says what to install."""


class Java(NamedTuple):
    """A Java: the path of its program, and its major version."""

    program: str
    version: int


def major_version(banner: str) -> int:
    """Return the major version in the output of `java -version`, or 0 if there is none."""
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(found.group(1)) if found else 0


def oldest_for(spark: str | None) -> int:
    """Return the oldest Java that a Spark version documents; for None, that of the newest Spark."""
    return 8 if spark is not None and spark.startswith("3.") else OLDEST


def java_for(spark: str | None) -> Java:
    """Return the Java that this version of Spark would run. Raises NoJavaError if there is none for it."""
    return _find(oldest_for(spark), _TO_RUN)


def find_java() -> str:
    """Return the path of a Java that can build and run everything here. Raises NoJavaError."""
    return _find(OLDEST, _TO_BUILD).program


def _find(oldest: int, advice: str) -> Java:
    home = os.environ.get("JAVA_HOME")
    # As in Spark itself, JAVA_HOME takes precedence, even if its path does not exist.
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if program is None:
        raise NoJavaError(f"no java on PATH and JAVA_HOME is not set: {advice}")
    try:
        banner = subprocess.run([program, "-version"], capture_output=True, text=True, check=True).stderr
    except OSError as error:
        raise NoJavaError(f"{program} does not run ({error.strerror}): {advice}") from error
    except subprocess.CalledProcessError as error:
        raise NoJavaError(f"{program} does not run (exit code {error.returncode}): {advice}") from error
    version = major_version(banner)
    if version < oldest:
        is_ = f"Java {version}" if version else "of an unknown version"
        raise NoJavaError(f"{program} is {is_}, Java {oldest} or later is needed: {advice}")
    return Java(program, version)


def check_compiler(java: str) -> None:
    """Raise NoJavaError if `java` has no compiler, which building the shim needs."""
    described = subprocess.run([java, "--describe-module", "jdk.compiler"], capture_output=True, check=False)
    if described.returncode != 0:
        raise NoJavaError(f"{java} is only a runtime, without a compiler: {_TO_BUILD}")


if __name__ == "__main__":
    try:
        check_compiler(find_java())
    except NoJavaError as error:
        sys.exit(f"spark-elastic: {error}")
