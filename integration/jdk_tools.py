"""Tools of the JDK, run by their class, since a Java that is found automatically may have none on PATH."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from spark_elastic_lab.demo.cluster import spark_home
from spark_elastic_tools.java import find_java

JAR = "jdk.jartool/sun.tools.jar.Main"
JCMD = "jdk.jcmd/sun.tools.jcmd.JCmd"
JSTACK = "jdk.jcmd/sun.tools.jstack.JStack"
KEYTOOL = "java.base/sun.security.tools.keytool.Main"
_JAVAC = "jdk.compiler/com.sun.tools.javac.Main"
_TOOL_S = 120.0


def run_tool(tool: str, *arguments: str | Path) -> None:
    """Run a tool to its end. Raises CalledProcessError, or TimeoutExpired after two minutes."""
    tool_output(tool, *arguments)


def tool_output(tool: str, *arguments: str | Path) -> str:
    """Run a tool like `run_tool`, and return its output."""
    command = [find_java(), "-m", tool, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, timeout=_TOOL_S, text=True)
    return done.stdout


def write_stacks(pid: int, file: Path) -> bool:
    """Write down the stacks of a JVM's threads; return whether the JVM has answered."""
    with suppress(subprocess.SubprocessError):
        file.write_text(tool_output(JSTACK, str(pid)))
        return True
    return False


def compile_java(source: Path, classes: Path, class_path: str | None = None) -> None:
    """Compile a program into the folder `classes`; None: it uses Spark. Raises CalledProcessError."""
    if class_path is None:
        class_path = os.pathsep.join(map(str, (spark_home() / "jars").glob("*.jar")))
    run_tool(_JAVAC, "-cp", class_path, "-d", classes, source)
