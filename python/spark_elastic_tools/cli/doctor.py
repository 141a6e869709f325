"""`spark-elastic doctor`: check whether spark-elastic works here, and what to change if not."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

from spark_elastic.installation import Spark, installed_spark, spark_home
from spark_elastic.lacks import lacks_of
from spark_elastic.spark_conf import default_properties_file, read_properties
from spark_elastic_tools.cli import checks
from spark_elastic_tools.cli.check import Check
from spark_elastic_tools.cli.driver import DriverCommand, Where, asks_driver
from spark_elastic_tools.live import shown


@click.command(cls=DriverCommand)
@click.option(
    "--live", is_flag=True, help="Ask a running application which parts are on, and why others are off."
)
@click.option(
    "--properties-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Check the settings in this file.  [default: Spark's spark-defaults.conf, if there is one]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array of checks.")
@asks_driver
def doctor(where: Where, live: bool, properties_file: Path | None, as_json: bool) -> None:
    """Check Java, Python, Spark, the jar and the settings; report what to change.

    With --live, --url or --app, a running application is asked instead: on a vendor's build of Spark, such as
    Databricks' or EMR's, parts of the plugin can be off. On Kubernetes, kubectl is asked why executors' pods
    wait, for quotas without room, and for the driver's memory. The exit code is 1 if a check fails; warnings
    do not count.
    """
    asked = live or where.url is not None or where.app is not None
    if asked:
        if properties_file is not None:
            raise click.UsageError(
                "--live asks a driver, --properties-file is read here: leave one of them out"
            )
        results = checks.checks(where.driver())
    else:
        results = _of_this_machine(properties_file)
    if as_json:
        click.echo(json.dumps([attrs.asdict(result) for result in results], indent=2))
    else:
        for result in results:
            change = f": {result.change}" if result.change else ""
            click.echo(shown(f"{result.status:4}  {result.check:12}  {result.found}{change}"))
        click.echo(_conclusion(results, asked=asked))
    if any(result.status == "fail" for result in results):
        sys.exit(1)


def _conclusion(results: Sequence[Check], *, asked: bool) -> str:
    """Say whether all is ready, and what to type next; a driver was `asked`, or this machine examined."""
    failed = [result.check for result in results if result.status == "fail"]
    if failed:
        return f"not ready: repair {', '.join(dict.fromkeys(failed))}, then type spark-elastic doctor again"
    if asked:
        return "ready: type spark-elastic status"
    is_on = any((result.check, result.status) == ("plugin", "ok") for result in results)
    return f"ready: type spark-submit {'' if is_on else '$(spark-elastic conf) '}app.py"


def _of_this_machine(properties_file: Path | None) -> list[Check]:
    spark = installed_spark()
    results = [
        checks.python(),
        checks.java(spark),
        checks.spark(spark),
        checks.jar(spark),
        *(checks.lacks(spark, lacks_of(spark)) if spark is not None else ()),
    ]
    file = properties_file or default_properties_file(os.environ, spark_home())
    return results + _settings(file, spark)


def _settings(file: Path | None, spark: Spark | None) -> list[Check]:
    if file is None:
        return [checks.no_properties_file(), checks.policy_python({}, os.environ)]
    try:
        conf = read_properties(file)
    except (OSError, UnicodeDecodeError) as error:
        return [Check.fail("settings", f"{file} cannot be read ({error})", "name another --properties-file")]
    return [
        *checks.settings(conf, file),
        *checks.policy_file(conf),
        checks.plugin(conf, file),
        *checks.class_path(conf, spark, spark_home()),
        checks.dynamic_allocation(conf),
        checks.checkpoints(conf, spark),
        checks.policy_python(conf, os.environ),
    ]
