"""Update the generated parts of README.md and docs/, or with --check compare them.

usage: python .ci/generated_docs.py [--check]
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "jvm-shim"))

import spark_versions  # noqa: E402  # found by the line above
from command_page import commands  # noqa: E402
from dashboard import dashboard  # noqa: E402
from metrics_page import metrics_tables  # noqa: E402
from migration_page import options_table  # noqa: E402
from rest_page import operations  # noqa: E402
from spark_elastic.installation import Spark  # noqa: E402
from spark_elastic.lacks import LACKS, lacks_of  # noqa: E402
from spark_elastic.settings import markdown_table  # noqa: E402
from states_page import reactions_table, states_picture, states_table  # noqa: E402

WIDTH = 100
MOST_SHOWN = 80


def versions_table() -> str:
    """Return the supported versions as a Markdown table, the default one first, and what some lack."""
    found = json.loads((ROOT / "docs" / "spark-versions.json").read_text(encoding="utf-8"))
    rows = ["| Spark | Scala | Java | tested with | lacks |", "|---|---|---|---|---|"]
    for row in spark_versions.supported():
        lacks = [str(LACKS.index(lack) + 1) for lack in lacks_of(Spark(row.pyspark))]
        default = row == spark_versions.supported()[0]
        tested = "; ".join(
            [
                f"{row.pyspark}: {'all tests' if default else _core_tests(found.get(row.name))}",
                *(f"{release}: {_core_tests(found.get(release))}" for release in row.others),
            ]
        )
        cells = (row.minor, row.scala_binary, f"{row.java} or later", tested, ", ".join(lacks) or "-")
        rows.append(f"| {' | '.join(cells)} |")
    notes = (
        _wrapped(f"{lack[0].upper()}{lack[1:]}.", f"{number}. ", "   ")
        for number, lack in enumerate(map(str, LACKS), 1)
    )
    return "\n".join([*rows, "", "What a version lacks:", "", *notes])


def _core_tests(counts: dict[str, int] | None) -> str:
    return "not yet" if counts is None else f"{counts['passed']} core tests, {counts['failed']} failed"


MOST_USED = (
    "schedulerMode",
    "python",
    "policy",
    "policyFile",
    "query.NAME.lowerBound",
    "query.NAME.upperBound",
    "explicitParallelism",
    "adaptiveScheduler.rescalePolicy",
    "restartStrategy.type",
    "savepointDir",
    "adviseOnly",
)
"""The settings shown in the README, by the name at the start of their row in the complete table."""


def most_used_settings() -> str:
    """Return the table of the settings that most users need, with a short description of each."""
    rows = {cells[1].split("`")[1]: cells for cells in map(cells, markdown_table().splitlines()[2:])}
    chosen = (rows[name] for name in MOST_USED)
    lines = (f"| {name} | {default} | {_gist(what)} |" for _, name, _, default, _, what, _ in chosen)
    return "\n".join(("| Setting | Default | What it does |", "|---|---|---|", *lines))


def cells(row: str) -> list[str]:
    """Return the texts between the bars of a table row; the one before the first bar is empty."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)]


def _gist(text: str) -> str:
    """Return a text's first sentence, up to a semicolon; if it is long, up to its last colon."""
    first = re.split(r"(?<=[a-z`)])[.;] ", text.removesuffix("."), maxsplit=1)[0]
    return first if len(first) <= MOST_SHOWN else first.rpartition(": ")[0] or first


def _wrapped(text: str, first: str, later: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )


GENERATED = {
    "README.md": {"settings": most_used_settings, "versions": versions_table},
    "docs/command-line.md": {"commands": commands},
    "docs/getting-started.md": {"versions": versions_table},
    "docs/life-of-a-query.md": {"states": states_table, "reactions": reactions_table},
    "docs/migration.md": {"options": options_table},
    "docs/operations.md": {"metrics": metrics_tables},
    "docs/rest.md": {"operations": operations},
    "docs/settings.md": {"settings": markdown_table},
}


WHOLE = {"docs/images/states.svg": states_picture, "conf/monitoring/dashboard.json": dashboard}
"""Files that are generated as a whole."""


def main() -> int:
    """Update the files, or return 1 if --check finds an outdated one."""
    codes = [bring_up_to_date(ROOT / name, parts) for name, parts in GENERATED.items()]
    return max(*codes, *(_write(ROOT / name, make()) for name, make in WHOLE.items()))


def bring_up_to_date(file: Path, parts: dict[str, Callable[[], str]]) -> int:
    """Write the generated parts of a file, or compare them with --check."""
    text = file.read_text(encoding="utf-8")
    wanted = text
    for name, make in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        head, found, rest = wanted.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            print(f"{file.name} has no place for '{name}': add {begin} {end}")
            return 1
        wanted = f"{head}{begin}\n{make().strip()}\n{end}{tail}"
    return _write(file, wanted)


def _write(file: Path, wanted: str) -> int:
    if "--check" not in sys.argv[1:]:
        file.write_text(wanted, encoding="utf-8")
    elif not file.is_file() or wanted != file.read_text(encoding="utf-8"):
        print(f"{file.name} is not up to date, type `make format`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
