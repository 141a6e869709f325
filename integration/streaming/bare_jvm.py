"""A JVM with Spark and the shim on its class path, and nothing started in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j import java_gateway, protocol
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from spark_elastic.jar import jar_path
from spark_elastic_lab.demo.cluster import SMALL_JVM, spark_home
from spark_elastic_tools.java import find_java


@contextmanager
def bare_jvm(*options: str, class_path: Sequence[Path] = ()) -> Iterator[Any]:
    """Return Py4J's view of a fresh JVM, started with these options; `class_path` comes before Spark's."""
    jars = spark_home() / "jars"
    port, token, process = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=os.pathsep.join(map(str, [jar_path(), *class_path, jars / "*"])),
        javaopts=[*SMALL_JVM.split(), *options],
        java_path=find_java(),
        enable_auth=True,
        return_proc=True,
        die_on_exit=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    # A PySpark session here has permanently replaced it by a function that needs the session's JVM.
    replaced, java_gateway.get_return_value = java_gateway.get_return_value, protocol.get_return_value
    try:
        yield gateway.jvm
    finally:
        java_gateway.get_return_value = replaced
        # Closing is not enough: objects that are collected later must not look for the JVM any more.
        gateway.shutdown()
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    # With `die_on_exit` the JVM ends when its standard input is closed.
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
