"""Check the layout of the Scala sources, or correct it with --write."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from spark_elastic_tools.java import NoJavaError, find_java
from spark_elastic_tools.maven import FetchError, fetch

CHECKOUT = Path(__file__).parent.parent
CONFIG = CHECKOUT / ".scalafmt.conf"


def main(write: bool) -> int:
    """Run scalafmt over every Scala file; return its exit code, 0 if the layout is correct."""
    found = re.search(r"^version = (\S+)$", CONFIG.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{CONFIG} has no line version = ...")
    jars = fetch(f"org.scalameta:scalafmt-cli_2.13:{found.group(1)}", transitive=True)
    sources = sorted([*CHECKOUT.glob("jvm-shim/src/**/*.scala"), *CHECKOUT.glob("integration/**/*.scala")])
    files = [str(path) for path in [CHECKOUT / "build.sbt", *sources]]
    command = [find_java(), "-cp", ":".join(map(str, jars)), "org.scalafmt.cli.Cli", "--config", str(CONFIG)]
    command += ["--non-interactive", *([] if write else ["--test"]), *files]
    # Differences go to stderr, progress to stdout.
    return subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(write="--write" in sys.argv[1:]))
    except (FetchError, NoJavaError) as error:
        sys.exit(f"spark-elastic: {error}")
