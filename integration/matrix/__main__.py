"""Run the core tests on other versions of Spark, each in an environment of its own.

usage: python -m integration.matrix [--spark NAME]... [--quick]

Without --spark all versions of spark-versions.txt but the one in .venv are tested: `make test` tests that one
completely. An environment is made once and kept among the downloads. The results are written to
docs/spark-versions.json, the source of the table of versions, but not with --quick. The last line of output
is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from integration.matrix.environment import environment
from spark_versions import SparkVersion, supported

CHECKOUT = Path(__file__).parents[2]
FOUND = CHECKOUT / "docs" / "spark-versions.json"

QUICK = (
    "integration/advice/test_any_spark.py",
    "integration/cluster/test_any_spark.py",
    "integration/streaming/test_contract.py",
)
WHOLE = (
    "tests/contract",
    *QUICK,
    "integration/batch/test_batch_settings.py",
    "integration/batch/test_comet.py",
    "integration/batch/test_earlier_plans.py",
    "integration/batch/test_native_engine.py",
    "integration/batch/test_one_plan.py",
    "integration/batch/test_scanned_rows.py",
    "integration/batch/test_stages.py",
    "integration/browser/test_page.py",
    "integration/cluster/test_dynamic_allocation.py",
    "integration/cluster/test_wait_while_running.py",
    "integration/jar",
    "integration/spark_suites",
    "integration/streaming/test_another_build.py",
    "integration/streaming/test_batch_stage_events.py",
    "integration/streaming/test_before_the_policy.py",
    "integration/streaming/test_checkpoint_command.py",
    "integration/streaming/test_checkpoints_of_other_sparks.py",
    "integration/streaming/test_conversion.py",
    "integration/streaming/test_endings.py",
    "integration/streaming/test_failures.py",
    "integration/streaming/test_init_scripts.py",
    "integration/streaming/test_log_lines.py",
    "integration/streaming/test_our_store.py",
    "integration/streaming/test_planned_batches.py",
    "integration/streaming/test_policy_faults.py",
    "integration/streaming/test_rest.py",
    "integration/streaming/test_restores.py",
    "integration/streaming/test_savepoints.py",
    "integration/streaming/test_sources.py",
    "integration/streaming/test_state_reads.py",
    "integration/streaming/test_stateless_count.py",
    "integration/streaming/test_unfit_jar.py",
    "integration/streaming/test_unusual_paths.py",
    "integration/streaming/test_user.py",
    "integration/streaming/test_watermarks.py",
)
# Only for a PySpark from pip: the replacement of its jars has neither Hive nor spark-shell.
OF_PYSPARK = ("integration/docs",)


def main() -> int:
    """Run the requested tests; return 1 if any failed."""
    arguments = _arguments()
    found = {}
    for name, row in tested().items():
        if name in (arguments.spark or [name]):
            print(f"Spark {row.pyspark}, Scala {row.scala_binary}", flush=True)
            found[name] = run(row, chosen(row, quick=arguments.quick))
    if not arguments.quick:
        known = json.loads(FOUND.read_text()) if FOUND.is_file() else {}
        FOUND.write_text(json.dumps({**known, **found}, indent=2, sort_keys=True) + "\n")
    print(json.dumps(found))
    return int(any(counts["failed"] for counts in found.values()))


def tested() -> dict[str, SparkVersion]:
    """Return what is tested here by its name: a version's, or that of another release of a version."""
    default, *others = supported()
    more = (each for row in (default, *others) for each in row.with_others())
    return {**{row.name: row for row in others}, **{row.pyspark: row for row in more}}


def chosen(row: SparkVersion, *, quick: bool) -> tuple[str, ...]:
    """Return the tests for one version."""
    if quick:
        return QUICK
    return WHOLE + OF_PYSPARK if row.on_pypi else WHOLE


def run(row: SparkVersion, tests: tuple[str, ...]) -> dict[str, str | int]:
    """Run tests on one version; return the numbers of passed, failed and skipped tests."""
    python = environment(CHECKOUT, row)
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        report = Path(folder) / "report.xml"
        # An earlier PySpark uses features for which its libraries now warn.
        chosen = ["-m", "matrix or not slow", "-W", "default", f"--junitxml={report}"]
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *tests]
        subprocess.run(command, cwd=CHECKOUT, check=False)
        suites = ET.parse(report).getroot().iter("testsuite") if report.is_file() else ()
        counts = [{name: int(suite.get(name, 0)) for name in _COUNTED} for suite in suites]
    total = {name: sum(count[name] for count in counts) for name in _COUNTED}
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - failed - total["skipped"]
    # A run without any test is no success.
    return {
        "pyspark": row.pyspark,
        "passed": passed,
        "skipped": total["skipped"],
        "failed": failed if passed else max(failed, 1),
    }


_COUNTED = ("tests", "failures", "errors", "skipped")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.matrix", description="Run the core tests on other versions of Spark."
    )
    parser.add_argument(
        "--spark",
        action="append",
        choices=tested(),
        help="a minor version, with its Scala if pip has none for it, or another release of one (all)",
    )
    parser.add_argument("--quick", action="store_true", help="a few tests only")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
