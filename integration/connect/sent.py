"""What a client sends to its session: a jar with a format of files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from spark_elastic.demo.cluster import spark_home
from spark_elastic.maven.jdk import find_java

FORMAT = "sent.Lines"
_JAVA = """\
package sent;

public class Lines extends org.apache.spark.sql.execution.datasources.text.TextFileFormat {}
"""


def reader_jar(folder: Path) -> Path:
    """Return a jar with the class `FORMAT`, which reads lines of text."""
    source, classes, jar = folder / "Lines.java", folder / "classes", folder / "lines.jar"
    source.write_text(_JAVA)
    spark = os.pathsep.join(map(str, (spark_home() / "jars").glob("*.jar")))
    _run_tool("jdk.compiler/com.sun.tools.javac.Main", "-cp", spark, "-d", classes, source)
    _run_tool("jdk.jartool/sun.tools.jar.Main", "--create", "--file", jar, "-C", classes, ".")
    return jar


def _run_tool(tool: str, *arguments: str | Path) -> None:
    """Run a tool of the JDK by its class: a Java that is found by itself has its tools nowhere on PATH."""
    subprocess.run([find_java(), "-m", tool, *arguments], check=True)
