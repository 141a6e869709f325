"""The jars of Spark's Kafka source, with a stand-in for the one that not every repository has.

usage: python -m integration.kafka.token_provider
It prints the option that `spark-elastic demo --source kafka` needs here: none where all can be fetched.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from spark_elastic_lab.demo.broker import source_jars
from spark_elastic_lab.demo.cluster import spark_home
from spark_elastic_tools.java import NoJavaError, find_java
from spark_elastic_tools.maven import FetchError

_SOURCES = Path(__file__).parent / "token-provider"
_TARGET = Path(__file__).parents[2] / "target" / "token-provider"


def kafka_jars() -> list[Path]:
    """Return the jars that an application needs to read from Kafka: Spark's own, or with the stand-in."""
    try:
        return source_jars()
    except FetchError:
        return source_jars(stand_in())


def stand_in() -> Path:
    """Return the jar of the stand-in, compiled if its sources have changed; it is never shipped."""
    sources = sorted(_SOURCES.glob("*.scala"))
    content = b"".join(source.read_bytes() for source in sources) + str(spark_home()).encode()
    jar = _TARGET / f"token-provider-{hashlib.sha256(content).hexdigest()[:16]}.jar"
    if not jar.is_file():
        _TARGET.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_TARGET) as part:
            # PySpark ships the compiler of its own Scala.
            made = Path(part, "classes.jar")
            command = [find_java(), "-Xss4m", "-XX:TieredStopAtLevel=1", "-cp", f"{spark_home() / 'jars'}/*"]
            command += ["scala.tools.nsc.Main", "-usejavacp", "-Xlint", "-Werror", "-d", str(made)]
            subprocess.run([*command, *map(str, sources)], check=True)
            made.rename(jar)
    return jar


def main() -> int:
    """Print the option; return 1, with the reason on standard error, if jars are missing even so."""
    try:
        provider = kafka_jars()[-1]
    except (FetchError, NoJavaError) as error:
        print(f"token_provider: {error}", file=sys.stderr)
        return 1
    if provider.is_relative_to(_TARGET):
        print("--token-provider", provider)
    return 0


if __name__ == "__main__":
    sys.exit(main())
