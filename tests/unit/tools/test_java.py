"""The Java of this machine: which one it is, whether it is new enough, and what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic_tools.java import (
    Java,
    NoJavaError,
    check_compiler,
    find_java,
    java_for,
    major_version,
    oldest_for,
)


def at_home(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> str:
    """Let JAVA_HOME have a `java` that is this script."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
    return str(program)


def says(banner: str) -> str:
    return f"echo '{banner}' >&2"


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_401"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("no version here", 0),
    ],
)
def test_the_version_is_read_in_both_spellings(banner: str, version: int) -> None:
    assert major_version(banner) == version


def test_java_that_is_new_enough_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = at_home(tmp_path, monkeypatch, says('openjdk version "17.0.1"'))
    assert find_java() == program
    assert java_for("4.2.0") == Java(program, 17)


@pytest.mark.parametrize(
    ("spark", "oldest"), [("3.5.9", 8), ("4.0.5", 17), ("4.2.0", 17), ("4.10.1", 17), (None, 17)]
)
def test_how_old_java_may_be_is_the_sparks_matter(
    spark: str | None, oldest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert oldest_for(spark) == oldest
    program = at_home(tmp_path, monkeypatch, says('java version "1.8.0_401"'))
    if oldest == 8:
        assert java_for(spark) == Java(program, 8)
        return
    with pytest.raises(NoJavaError, match=r"is Java 8, Java 17 or later is needed: .*openjdk-17-jre"):
        java_for(spark)


def test_missing_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(NoJavaError, match="install a JDK 17 or later"):
        find_java()
    with pytest.raises(NoJavaError, match=r"no java on PATH .*: install Java 17"):
        java_for("4.2.0")


@pytest.mark.parametrize(
    ("script", "problem"), [("exit 1", "does not run"), (says("a banner"), "is of an unknown version")]
)
def test_java_that_cannot_be_used_is_named(
    script: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = at_home(tmp_path, monkeypatch, script)
    with pytest.raises(NoJavaError, match=f"{program} {problem}"):
        find_java()


def test_a_runtime_alone_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = 'case " java.base {} " in *" $2 "*) exit 0 ;; esac\nexit 1'
    check_compiler(at_home(tmp_path, monkeypatch, modules.format("jdk.compiler")))
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    with pytest.raises(NoJavaError, match=r"only a runtime, without a compiler: install a JDK 17"):
        check_compiler(at_home(runtime, monkeypatch, modules.format("")))
