"""`spark-elastic jar`: where the jar is."""

from __future__ import annotations

import click

from spark_elastic.cli.installation import spark_version
from spark_elastic.jar import JarNotFoundError, jar_path


@click.command()
@click.option("--spark", metavar="VERSION", help="For this version instead of the Spark that is installed.")
def jar(spark: str | None) -> None:
    """Print the path of the jar for the installed Spark (SPARK_HOME, or pyspark)."""
    try:
        click.echo(jar_path(spark or spark_version()))
    except JarNotFoundError as error:
        raise click.ClickException(str(error)) from error
