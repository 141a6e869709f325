"""`spark-elastic conf`: the settings that turn the plugin on, in the requested format."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from spark_elastic.installation import installed_spark, spark_home
from spark_elastic.jar import JarNotFoundError, jar_path
from spark_elastic.settings import keys
from spark_elastic.spark_conf import ConflictError, default_properties_file, plugin_conf, read_properties

_MODES = next(key.kind.choices for key in keys() if key.name == "schedulerMode")


@click.command()
@click.option(
    "--mode", type=click.Choice(_MODES), help="How to scale.  [default: what is set, else reactive]"
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("flags", "defaults", "json", "shell")),
    default="flags",
    show_default=True,
    help="flags: for $(...); shell: quoted, for eval or a script; defaults: lines of spark-defaults.conf.",
)
@click.option(
    "--properties-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Add to the settings in this file.  [default: Spark's spark-defaults.conf, if there is one]",
)
def conf(mode: str | None, form: str, properties_file: Path | None) -> None:
    """Print the settings that turn spark-elastic on.

    \b
    spark-submit $(spark-elastic conf --mode reactive) app.py
    spark-elastic conf --format defaults >> $SPARK_HOME/conf/spark-defaults.conf

    Lists that are already in spark-defaults.conf (spark.plugins, spark.jars, spark.driver.extraClassPath) are
    kept and extended. Your own --jars replaces spark.jars: in deploy mode cluster, name the jar there.
    """  # noqa: D301  # click wants the character itself
    file = properties_file or default_properties_file(os.environ, spark_home())
    try:
        existing = read_properties(file) if file is not None else {}
        settings = plugin_conf(existing, jar=jar_path(installed_spark()), python=sys.executable, mode=mode)
    except (ConflictError, JarNotFoundError) as error:
        raise click.ClickException(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file} cannot be read: {error}") from error
    click.echo(_FORMS[form](settings))


def _flags(settings: Mapping[str, str]) -> str:
    for value in settings.values():
        if re.search(r"[\s*?\[]", value):
            raise click.ClickException(
                f"'{value}' does not survive $(...): type eval \"spark-submit "
                '$(spark-elastic conf --format shell) app.py"'
            )
    return " ".join(f"--conf {key}={value}" for key, value in settings.items())


def _shell(settings: Mapping[str, str]) -> str:
    return " ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items())


def _defaults(settings: Mapping[str, str]) -> str:
    width = max(map(len, settings))
    return "\n".join(
        f"{key:{width}}  {value.replace(chr(92), chr(92) * 2)}" for key, value in settings.items()
    )


def _json(settings: Mapping[str, str]) -> str:
    return json.dumps(settings, indent=2)


_FORMS = {"flags": _flags, "shell": _shell, "defaults": _defaults, "json": _json}
