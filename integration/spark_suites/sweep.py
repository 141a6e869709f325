"""Run all of Spark's own suites that run queries, with the plugin as shipped; repeat failures without it.

usage: python -m integration.spark_suites.sweep [--minutes N] [--share I/N] [--compare] [--again] [WORD...]

Each suite's outcome is kept in target/spark-suites/SPARK/sweep, so that a later call continues where an
earlier one ended; calls with different shares may run side by side. A suite that passes completely with the
plugin is not run without it. A test that fails only with the plugin is explained if it passes once the
plugin keeps the user's partitions (explicitParallelism fixed), or also the user's state store; other expected
differences are in differences.py, with their reasons. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import zipfile
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from integration.class_files import parse
from integration.spark_suites.differences import BY_CHANCE, differences
from integration.spark_suites.run import DEFAULTS
from integration.spark_suites.suite_jars import suite_jars
from integration.spark_suites.suite_runner import Outcomes, results_folder, run_suites
from spark_elastic.core.keys.key import PREFIX
from spark_elastic.core.keys.rescaling import EXPLICIT_PARALLELISM, STATE_STORE

_SQL = "org.apache.spark.sql."
#: The packages with suites that run queries.
_PACKAGES = ("execution", "sources", "connector", "streaming")
_INTERFACE_OR_ABSTRACT = 0x0600
# The number of suites that share a JVM; its start and warm-up cost as much as a small suite.
_TOGETHER = 12


def all_suites() -> list[str]:
    """Return the full names of the suites in Spark's jar of tests.

    Streaming comes first, since most of the plugin is about it; what only changes a catalog comes last.
    """
    with zipfile.ZipFile(suite_jars()[0]) as jar:
        names = [
            name
            for path in jar.namelist()
            if path.endswith("Suite.class") and "$" not in path
            for name in [path.removesuffix(".class").replace("/", ".")]
            if _runs_queries(name) and not _is_abstract(jar.read(path))
        ]
    return sorted(names, key=lambda name: (".streaming." not in name, ".command." in name, name))


def _runs_queries(name: str) -> bool:
    inside = name.removeprefix(_SQL)
    return inside != name and ("." not in inside or inside.split(".")[0] in _PACKAGES)


def _is_abstract(content: bytes) -> bool:
    return bool(int.from_bytes(parse(content).rest[:2], "big") & _INTERFACE_OR_ABSTRACT)


class Kept:
    """The outcomes of one side, with or without the plugin, in one file per suite."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._folder = results_folder() / "sweep" / name
        self._folder.mkdir(parents=True, exist_ok=True)

    def has(self, suite: str) -> bool:
        """Return whether a suite has been run."""
        return self._file(suite).is_file()

    def outcomes(self, suite: str) -> Outcomes | None:
        """Return the outcomes of a suite's tests, or None if it has not been run."""
        if not self.has(suite):
            return None
        found: Outcomes = json.loads(self._file(suite).read_text(encoding="utf-8"))
        return found

    def put(self, suite: str, outcomes: Outcomes) -> None:
        """Keep the outcome of a suite; it is empty if the suite was aborted, hung or crashed."""
        self._file(suite).write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")

    def forget(self, suite: str) -> None:
        """Mark a suite to be run again."""
        self._file(suite).unlink(missing_ok=True)

    def _file(self, suite: str) -> Path:
        return self._folder / f"{suite}.json"


#: The user's words that explain a difference: with them, the test passes with the plugin too.
_EXPLANATIONS = {
    "partitions": {**DEFAULTS, f"{PREFIX}{EXPLICIT_PARALLELISM.name}": "fixed"},
    "store": {f"{PREFIX}{EXPLICIT_PARALLELISM.name}": "fixed", f"{PREFIX}{STATE_STORE.name}": "unchanged"},
}


def broken(suite: str, plugin: Outcomes, plain: Outcomes) -> dict[str, str]:
    """Return the tests that fail only with the plugin and for no known reason, with their messages."""
    explained = {**differences(suite, DEFAULTS), **BY_CHANCE.get(suite, {})}
    passed = [name for name, why in plain.items() if why is None and name not in explained]
    now = {name: plugin.get(name, "not run") for name in passed}
    return {name: why for name, why in now.items() if why is not None}


def main() -> int:
    """Continue the sweep; return 1 if a test is broken that passes without the plugin."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    until = time.monotonic() + 60 * arguments.minutes
    part, parts = arguments.share
    suites = [s for s in all_suites() if not arguments.words or any(word in s for word in arguments.words)]
    suites = suites[part - 1 :: parts]
    plugin, plain = Kept("plugin"), Kept("plain")
    if arguments.again:
        for suite in suites:
            plugin.forget(suite)
    if not arguments.compare:
        _run(plugin, [s for s in suites if not plugin.has(s)], DEFAULTS, until, part)
    done = [s for s in suites if plugin.has(s)]
    doubtful = [s for s in done if _is_doubtful(plugin.outcomes(s))]
    _run(plain, [s for s in doubtful if not plain.has(s)], None, until, part)
    compared = [s for s in doubtful if plain.has(s)]
    found = {s: broken(s, plugin.outcomes(s) or {}, plain.outcomes(s) or {}) for s in compared}
    explained: dict[str, int] = {}
    for name, settings in _EXPLANATIONS.items():
        side = Kept(name)
        _run(side, [s for s, tests in found.items() if tests and not side.has(s)], settings, until, part)
        rest = {s: failing(tests, side.outcomes(s) or {}) for s, tests in found.items()}
        explained[name] = sum(map(len, found.values())) - sum(map(len, rest.values()))
        found = rest
    found = {s: tests for s, tests in found.items() if tests}
    for suite, tests in found.items():
        for test, why in tests.items():
            print(f"{suite.removeprefix(_SQL)}: {test}: {why.splitlines()[0][:200] if why else ''}")
    counts = [plugin.outcomes(s) or {} for s in done]
    print(
        json.dumps(
            {
                "suites": len(suites),
                "run": len(done),
                "tests": sum(map(len, counts)),
                "passed": sum(list(c.values()).count(None) for c in counts),
                "to_compare": len(doubtful) - len(compared),
                "explained": explained,
                "broken": {suite: sorted(tests) for suite, tests in found.items()},
            }
        )
    )
    return 1 if found else 0


def _is_doubtful(outcomes: Outcomes | None) -> bool:
    return not outcomes or any(why is not None for why in outcomes.values())


def failing(tests: Mapping[str, str], outcomes: Outcomes) -> dict[str, str]:
    """Return those of the tests that fail, or were not run, on another side."""
    return {test: why for test, why in tests.items() if outcomes.get(test, why) is not None}


def _run(side: Kept, suites: list[str], settings: Mapping[str, str] | None, until: float, part: int) -> None:
    waiting = deque(_groups(suites))
    while waiting and time.monotonic() < until:
        together = waiting.popleft()
        started = time.monotonic()
        outcomes = run_suites(
            together,
            plugin=settings is not None,
            settings=dict(settings or {}),
            name=f"sweep-{side.name}-{part}",
        )
        missing = [suite for suite in together if not outcomes[suite]]
        for suite in together:
            if outcomes[suite] or len(together) == 1:
                side.put(suite, outcomes[suite])
        if missing and len(together) > 1:
            # They run in this order, so the first one without outcomes ended the JVM; it runs alone, later.
            waiting.append(missing[:1])
            if missing[1:]:
                waiting.appendleft(missing[1:])
        print(f"{side.name} {time.monotonic() - started:5.0f} s {_summary(outcomes)}", flush=True)


def _groups(suites: list[str]) -> Iterator[list[str]]:
    return (suites[at : at + _TOGETHER] for at in range(0, len(suites), _TOGETHER))


def _summary(outcomes: Mapping[str, Outcomes]) -> str:
    short = {s.rsplit(".", 1)[-1]: o for s, o in outcomes.items()}
    return ", ".join(f"{s} {list(o.values()).count(None)}/{len(o)}" for s, o in short.items())


def _share(text: str) -> tuple[int, int]:
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return part, parts


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integration.spark_suites.sweep", description=__doc__)
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="only suites whose full name has one of them"
    )
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing after so many")
    parser.add_argument(
        "--share", type=_share, default=(1, 1), metavar="I/N", help="only the I-th of every N suites"
    )
    parser.add_argument("--compare", action="store_true", help="only compare what was run with the plugin")
    parser.add_argument("--again", action="store_true", help="forget what was run with the plugin")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
