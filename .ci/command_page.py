"""The command line reference, generated from click's own description."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from spark_elastic_tools.cli.driver import asks_driver
from spark_elastic_tools.cli.main import cli


def commands() -> str:
    """Describe each command: its usage, its effect, the meaning of its arguments, and its options."""
    context = click.Context(cli, info_name="spark-elastic")
    return "\n\n".join(_sections(cli, context))


def _sections(group: click.Group, context: click.Context, before: str = "") -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield _section(f"{before}{name}", command, context)
        if isinstance(command, click.Group):
            inner = click.Context(command, info_name=name, parent=context)
            yield from _sections(command, inner, f"{before}{name} ")


def _section(title: str, command: click.Command, group: click.Context) -> str:
    context = click.Context(command, info_name=title.rpartition(" ")[2], parent=group)
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    asks = _shared() <= {str(p.name) for p in command.params}
    shared = _shared() if asks else set()
    options = [p for p in command.params if isinstance(p, click.Option) and p.name not in shared]
    rows = [_row(option, context) for option in options]
    parts = [f"### {title}", f"```text\n{usage}\n```", _help(command)]
    if rows:
        parts.append("\n".join(("| option | |", "|---|---|", *rows)))
    if asks:
        parts.append("It takes the [options that say where the driver is](#where-the-driver-is).")
    if command.epilog:
        parts.append(inspect.cleandoc(command.epilog))
    return "\n\n".join(parts)


def _shared() -> frozenset[str]:
    """Return the names of the options that locate the driver, which the page describes once."""
    command = click.command()(asks_driver(lambda **_: None))
    return frozenset(param.name for param in command.params if param.name is not None)


def _help(command: click.Command) -> str:
    """Return the help of a command; the parts that click does not wrap become blocks of text."""
    blocks = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(
        "```text\n" + block.removeprefix("\b\n") + "\n```" if block.startswith("\b") else _escaped(block)
        for block in blocks
    )


def _row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None, f"{option.name} is hidden"
    names, text = record
    cell = " ".join(text.split()).replace("|", "\\|")
    return f"| `{names.replace('|', chr(92) + '|')}` | {_escaped(cell)} |"


def _escaped(text: str) -> str:
    """Escape what looks like markup, such as [default: 20] and <FILE>."""
    return text.replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*")
