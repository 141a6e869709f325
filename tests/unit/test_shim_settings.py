"""Tests that the shim's early settings have the policy process's spellings and defaults."""

from __future__ import annotations

import re
from pathlib import Path

from spark_elastic.core.keys import called

SHIM = Path(__file__).parents[2] / "jvm-shim" / "src" / "main" / "scala"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SHIM.rglob("*.scala")))


def kebab(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "-" + letter[0].lower(), name)


def test_a_key_of_several_words_is_read_in_both_spellings() -> None:
    read = re.findall(r'"spark\.elastic\.([a-z]+[A-Z]\w*)"(?:, "spark\.elastic\.([\w-]+)")?', TEXT)
    assert {"schedulerMode", "startTimeout", "policyRetryInterval"} <= {camel for camel, _ in read}
    for camel, other in read:
        assert called(camel) is not None
        assert other == kebab(camel)


def test_a_duration_has_the_default_of_the_policy() -> None:
    defaults = dict(re.findall(r'durationMs\(conf, (\d+)L, "spark\.elastic\.(\w+)"', TEXT))
    assert set(defaults.values()) == {"startTimeout", "policyRetryInterval"}
    for default, name in defaults.items():
        key = called(name)
        assert key is not None
        assert key.default == int(default)
