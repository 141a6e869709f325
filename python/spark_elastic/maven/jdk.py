"""Find the Java that everything runs on.

The Makefile runs this file by its path before anything is installed: it imports nothing of ours.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 17
PACKAGE = f"openjdk-{OLDEST}-jdk-headless"
ADVICE = f"install a JDK {OLDEST} or later (Debian: apt-get install {PACKAGE}) or set JAVA_HOME"


class NoJavaError(Exception):
    """There is no Java, or it is too old; the message says what to install."""


def major_version(banner: str) -> int:
    """Return the major version in the output of `java -version`; 0 if it has none."""
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(found.group(1)) if found else 0


def find_java() -> str:
    """Return the path of JAVA_HOME's java, else of the PATH's; raise NoJavaError if it will not do."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise NoJavaError(f"no java on PATH and JAVA_HOME is not set: {ADVICE}")
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoJavaError(f"{java} does not run ({error}): {ADVICE}") from error
    version = major_version(run.stderr)
    if version < OLDEST:
        raise NoJavaError(f"{java} is Java {version or 'of an unknown version'}: {ADVICE}")
    return java


def check_compiler(java: str) -> None:
    """Raise NoJavaError for a `java` that comes without a compiler, which building the shim needs."""
    described = subprocess.run([java, "--describe-module", "jdk.compiler"], capture_output=True, check=False)
    if described.returncode != 0:
        raise NoJavaError(f"{java} is only a runtime, without a compiler: {ADVICE}")


if __name__ == "__main__":
    try:
        check_compiler(find_java())
    except NoJavaError as error:
        sys.exit(f"spark-elastic: {error}")
