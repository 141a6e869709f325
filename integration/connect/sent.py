"""The artifacts that a client sends to its session: a jar with a file format."""

from __future__ import annotations

from pathlib import Path

from integration.jdk_tools import JAR, compile_java, run_tool

FORMAT = "sent.Lines"
_JAVA = """\
package sent;

public class Lines extends org.apache.spark.sql.execution.datasources.text.TextFileFormat {}
"""


def reader_jar(folder: Path) -> Path:
    """Return a jar with the class `FORMAT`, which reads lines of text."""
    source, classes, jar = folder / "Lines.java", folder / "classes", folder / "lines.jar"
    source.write_text(_JAVA)
    compile_java(source, classes)
    run_tool(JAR, "--create", "--file", jar, "-C", classes, ".")
    return jar
