"""`spark-elastic completion`: the script that lets a shell complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_PROGRAM = "spark-elastic"
_VARIABLE = "_SPARK_ELASTIC_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that lets a SHELL complete commands, options and query names.

    \b
    bash:  eval "$(spark-elastic completion bash)"     in ~/.bashrc
    zsh:   eval "$(spark-elastic completion zsh)"      in ~/.zshrc
    fish:  spark-elastic completion fish | source      in ~/.config/fish/config.fish
    """  # noqa: D301  # click wants the character itself
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source())
