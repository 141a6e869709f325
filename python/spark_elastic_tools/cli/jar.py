"""`spark-elastic jar`: the path of the jar."""

from __future__ import annotations

import click

from spark_elastic.installation import Spark, installed_spark
from spark_elastic.jar import JarNotFoundError, jar_path


@click.command()
@click.option(
    "--spark",
    metavar="VERSION",
    help="For this version instead of the Spark that is installed; 3.5_2.13: with this Scala.",
)
def jar(spark: str | None) -> None:
    """Print the path of the jar for the installed Spark (SPARK_HOME, or pyspark)."""
    try:
        click.echo(jar_path(_named(spark) if spark else installed_spark()))
    except JarNotFoundError as error:
        raise click.ClickException(str(error)) from error


def _named(version: str) -> Spark:
    spark, _, scala = version.partition("_")
    return Spark(spark, scala or None)
