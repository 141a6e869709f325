"""Run Spark's own test suites with the plugin on: tests that pass without it must pass with it.

usage: python -m integration.spark_suites [--all | SUITE...] [--baseline] [--defaults] [--set KEY=VALUE]...
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from integration.spark_suites import baseline
from integration.spark_suites.differences import differences
from integration.spark_suites.suite_jars import JarFailure, has_suite
from integration.spark_suites.suite_runner import NotAnsweredError, run_suite
from spark_elastic.core.keys.key import PREFIX
from spark_elastic.core.keys.rescaling import EXPLICIT_PARALLELISM, STATE_STORE
from spark_elastic.jar import JarNotFoundError

_STREAMING = "org.apache.spark.sql.streaming."
_EXECUTION = "org.apache.spark.sql.execution."

#: The suites of the classes that the plugin replaces; about 80 s.
DEFAULT = (f"{_STREAMING}StreamingQueryManagerSuite", f"{_STREAMING}StreamingQuerySuite")

#: Suites of the behaviour of queries that run under the plugin.
MORE = (
    f"{_STREAMING}StreamingQueryListenerSuite",
    f"{_STREAMING}StreamingQueryStatusAndProgressSuite",
    f"{_STREAMING}StreamingAggregationSuite",
    f"{_STREAMING}TriggerAvailableNowSuite",
    f"{_EXECUTION}streaming.sources.ForeachBatchSinkSuite",
    f"{_STREAMING}StreamingInnerJoinWithVCFSuite",
    f"{_STREAMING}StreamingOuterJoinWithVCFSuite",
    f"{_STREAMING}StreamingFullOuterJoinWithVCFSuite",
    f"{_STREAMING}StreamingLeftSemiJoinWithVCFSuite",
    f"{_STREAMING}StreamingDeduplicationSuite",
    f"{_STREAMING}StreamingSessionWindowSuite",
    f"{_STREAMING}TransformWithStateUnsafeRowSuite",
    f"{_EXECUTION}adaptive.AdaptiveQueryExecSuite",
    f"{_EXECUTION}CoalesceShufflePartitionsSuite",
)

#: The settings of a user who sets nothing; the suites usually run with others.
DEFAULTS = {f"{PREFIX}{key.name}": str(key.default) for key in (EXPLICIT_PARALLELISM, STATE_STORE)}


def main() -> int:
    """Run the requested suites; return 1 if a test is broken, 2 if something is missing."""
    arguments = _arguments()
    # As with Ctrl-C, the started processes must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    suites = arguments.suites or (DEFAULT + MORE if arguments.all else DEFAULT)
    settings = dict(DEFAULTS) if arguments.defaults else {}
    settings |= dict(pair.split("=", 1) for pair in arguments.set)
    print(f"{'suite':<46}{'tests':>6}{'passed':>8}{'differ':>8}{'broken':>8}{'s':>6}", flush=True)
    try:
        good = [_run(suite, settings, make_baseline=arguments.baseline) for suite in suites]
    except (JarFailure, JarNotFoundError, NotAnsweredError, baseline.NoResultsError) as failure:
        print(f"spark-suites: {failure}", file=sys.stderr)
        return 2
    return 0 if all(good) else 1


def _run(suite: str, settings: dict[str, str], *, make_baseline: bool) -> bool:
    """Run one suite, print its line of the table and return whether the result is as expected."""
    started = time.monotonic()
    known = baseline.load()
    name = suite.rsplit(".", 1)[-1]
    if not has_suite(suite):
        print(f"{name:<46}not in this Spark", flush=True)
        return suite in MORE
    outcomes = run_suite(suite, plugin=not make_baseline, settings=settings)
    if make_baseline:
        baseline.store(suite, outcomes)
    elif suite not in known:
        # For a suite outside the lists above, the baseline is created on the fly.
        baseline.store(suite, run_suite(suite, plugin=False, settings={}))
    expected = {} if make_baseline else differences(suite, settings)
    broken = baseline.broken(suite, outcomes, expected)
    passed = list(outcomes.values()).count(None)
    differ = sum(outcomes.get(test) is not None for test in expected)
    seconds = time.monotonic() - started
    print(f"{name:<46}{len(outcomes):>6}{passed:>8}{differ:>8}{len(broken):>8}{seconds:>6.0f}", flush=True)
    for test, why in broken.items():
        print(f"  {test}: {why}", flush=True)
    return bool(outcomes) and not broken


def _named(names: list[str]) -> tuple[str, ...]:
    """Expand simple names of known suites; full names stay unchanged. Raises ValueError."""
    known = {suite.rsplit(".", 1)[-1]: suite for suite in DEFAULT + MORE}
    unknown = [name for name in names if "." not in name and name not in known]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: give a full class name, or one of {', '.join(known)}")
    return tuple(known.get(name, name) for name in names)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.spark_suites",
        description="Run Spark's own test suites with the plugin on.",
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="simple or full class names")
    parser.add_argument("--all", action="store_true", help="run every listed suite (about 15 minutes)")
    parser.add_argument(
        "--baseline", action="store_true", help="run without the plugin and record what passes"
    )
    parser.add_argument(
        "--defaults",
        action="store_true",
        help="keep the plugin's own defaults, where the suites have settings that leave their numbers alone",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one more Spark setting"
    )
    arguments = parser.parse_args()
    try:
        arguments.suites = _named(arguments.suites)
    except ValueError as error:
        parser.error(str(error))
    return arguments
