"""The group `spark-elastic`: each command is a module that is loaded when it is used."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

from spark_elastic.version import __version__

try:
    import click
    import rich as rich  # all commands need it; importing it here gives one error message for all
except ModuleNotFoundError as missing:
    sys.exit(f"spark-elastic: {missing.name} is not installed: type `pip install 'spark-elastic[cli]'`")


_COMMANDS = (
    *("demo", "conf", "jar", "init-script", "doctor"),
    *("status", "watch", "explain", "history", "rescale", "savepoint", "stop"),
    *("replay", "simulate", "advise", "compare", "checkpoint", "completion"),
)


class _Commands(click.Group):
    """Loads the command NAME from ``spark_elastic_tools.cli.NAME:NAME``, with _ for each -."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in _COMMANDS if find_spec(_module(name)) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = getattr(import_module(_module(cmd_name)), _python_name(cmd_name))
        assert isinstance(command, click.Command)
        return command


def _module(name: str) -> str:
    return f"spark_elastic_tools.cli.{_python_name(name)}"


def _python_name(command: str) -> str:
    return command.replace("-", "_")


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spark-elastic")
def cli() -> None:
    """Elastic scaling for Apache Spark: streaming queries use the executors that are available.

    \b
    Exit codes of the commands that ask a driver (status, watch, explain, history, rescale, savepoint, stop):
      0  done
      1  refused or failed
      2  wrong usage
      3  no driver, or one without spark-elastic, of another version, or with an untrusted certificate
      4  not allowed: read-only, Spark's ACLs, or a login is missing or wrong
      5  no such query, or more than one
      6  the policy process is busy or starting: try again
    """  # noqa: D301  # click wants the character itself


def main() -> None:
    """Run the command line and end the process with its exit code."""
    cli(prog_name="spark-elastic")
