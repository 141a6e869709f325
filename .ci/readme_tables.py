"""Put the tables that are generated into README.md, or with --check tell whether they are there.

usage: python .ci/readme_tables.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "jvm-shim"))

import spark_versions  # noqa: E402  # found by the line above
from spark_elastic.settings import markdown_table  # noqa: E402

README = ROOT / "README.md"


def versions_table() -> str:
    """Return the supported versions as a markdown table, the default one first."""
    rows = ["| Spark | Scala | Java | Py4J |", "|---|---|---|---|"]
    for row in spark_versions.supported():
        rows.append(
            f"| {row.minor} (tested with {row.spark}) | {row.scala_binary} | {row.java} | {row.py4j} |"
        )
    return "\n".join(rows)


def main() -> int:
    """Write README.md, or return 1 if --check finds that it is not up to date."""
    text = README.read_text(encoding="utf-8")
    wanted = text
    for name, table in (("settings", markdown_table()), ("versions", versions_table())):
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        head, found, rest = wanted.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            print(f"README.md has no place for the table '{name}': add {begin} {end}")
            return 1
        wanted = f"{head}{begin}\n{table.strip()}\n{end}{tail}"
    if "--check" not in sys.argv[1:]:
        README.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        print("README.md: the tables are not up to date, type `make format`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
