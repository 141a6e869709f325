"""Tests of the check that `make` makes before a build: a Java with its compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic_tools.maven import NoJavaError, check_compiler


def java(folder: Path, modules: str) -> str:
    """Make a `java` with such modules, since few machines have a real one without a compiler."""
    program = folder / "java"
    program.write_text(f'#!/bin/sh\ncase " {modules} " in *" $2 "*) exit 0 ;; esac\nexit 1\n')
    program.chmod(0o755)
    return str(program)


def test_a_runtime_alone_is_refused_with_what_to_install(tmp_path: Path) -> None:
    check_compiler(java(tmp_path, "java.base jdk.compiler"))
    with pytest.raises(NoJavaError, match=r"only a runtime, without a compiler: install a JDK 17"):
        check_compiler(java(tmp_path, "java.base"))
