"""Tests of which errors of ours must not end anything else."""

from __future__ import annotations

import pytest

from integration.streaming.bare_jvm import bare_jvm

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

HARMLESS = {
    ("IllegalStateException", "a bug of ours"): True,
    ("NoSuchMethodError", "another build of Spark"): True,
    ("NoClassDefFoundError", "another build of Spark"): True,
    ("StackOverflowError", "a plan that is too deep"): True,
    ("OutOfMemoryError", "unable to create native thread: possibly out of memory"): True,
    ("OutOfMemoryError", "Java heap space"): False,
    ("ThreadDeath", None): False,
}


def test_what_is_wrong_with_us_alone_is_harmless() -> None:
    with bare_jvm() as jvm:
        found = {}
        for name, message in HARMLESS:
            kind = getattr(jvm.java.lang, name)
            error = kind() if message is None else kind(message)
            found[name, message] = jvm.org.apache.spark.elastic.Harmless.unapply(error).isDefined()
    assert found == HARMLESS
