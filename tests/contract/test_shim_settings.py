"""Tests that the shim passes on every Spark setting that the policy process reads."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIM = ROOT / "jvm-shim/src/main/scala/org/apache/spark/elastic/Shim.scala"
READ = re.compile(r'conf(?:\.get\(|\[|, )"(spark\.(?!elastic\.)[\w.]+)"')


def test_what_is_read_is_shown() -> None:
    texts = [
        file.read_text(encoding="utf-8")
        for folder in ("core", "runtime")
        for file in sorted((ROOT / "python/spark_elastic" / folder).rglob("*.py"))
    ]
    read = {name for text in texts for name in READ.findall(text)}
    assert {"spark.executor.memory", "spark.master", "spark.decommission.enabled"} <= read
    shown = set(re.findall(r'^    "(spark\.[\w.]+)"', SHIM.read_text(encoding="utf-8"), re.MULTILINE))
    assert read <= shown
