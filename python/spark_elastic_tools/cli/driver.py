"""Shared code of all commands that ask a driver: its address, their exit codes, their output."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from attrs import frozen
from click.shell_completion import CompletionItem
from rich.console import Console

from spark_elastic.version import __version__
from spark_elastic_tools.client import (
    Busy,
    Driver,
    Failure,
    Json,
    NoDriver,
    NotAllowed,
    Refused,
    Source,
    UnknownQuery,
    basic_login,
    bearer_login,
    tidy_url,
    title,
    ui_of,
)
from spark_elastic_tools.live import shown

EXIT_CODES: dict[type[Failure], int] = {
    Refused: 1,
    # 2 is click's, for wrong usage.
    NoDriver: 3,
    NotAllowed: 4,
    UnknownQuery: 5,
    Busy: 6,
}
_WIDTH_OF_A_LOG = 160
# The user who pressed the tab key waits for it.
_COMPLETION_S = 0.5
_DEFAULT_URL = "http://localhost:4040"
_DEFAULT_MASTER_UI = "http://localhost:8080"


class DriverCommand(click.Command):
    """A command that reports each failure as one line on standard error, and by its exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; if it fails, exit with the code of its failure."""
        try:
            return super().invoke(ctx)
        except Failure as failure:
            code, sentences = EXIT_CODES[type(failure)], str(failure).splitlines()
        except KeyError as missing:
            code, sentences = (
                EXIT_CODES[NoDriver],
                [
                    f"the driver's answer has no {missing}: this is spark-elastic {__version__}, the "
                    "driver has another version: use the command of the version that the application has"
                ],
            )
        for sentence in sentences:
            click.echo(f"spark-elastic {self.name}: {shown(sentence)}", err=True)
        ctx.exit(code)


@frozen(kw_only=True)
class Where:
    """The driver's address as it was typed; the environment fills in what was not."""

    url: str | None
    app: str | None
    master_ui: str | None
    user: str | None
    token_file: Path | None
    header: tuple[str, ...] = ()

    def driver(self, **more: float) -> Driver:
        """Find the driver without sending it a request. Raises Failure and UsageError."""
        if self.url is not None and self.app is not None:
            raise click.UsageError("--url and --app both name the driver: leave one of them out")
        headers = self.headers()
        url = self.url or (os.environ.get("SPARK_ELASTIC_URL") if self.app is None else None)
        if self.app is not None:
            master = self.master_ui or os.environ.get("SPARK_ELASTIC_MASTER_UI") or _DEFAULT_MASTER_UI
            url = ui_of(self.app, _tidy(master), headers)
        return Driver(_tidy(url or _DEFAULT_URL), headers, **more)

    def source(self, journal: Path | None) -> Source:
        """Read the journal if one is given, else find the driver. Raises Failure and UsageError."""
        if journal is None:
            return self.driver()
        # This imports the scheduler and the whole API, which takes a moment.
        from spark_elastic_tools.recorded import recorded

        return recorded(journal)

    def headers(self) -> dict[str, str]:
        """Return the headers for every request, with the login. Raises UsageError."""
        headers = {}
        for line in self.header:
            name, colon, value = line.partition(":")
            if not colon or not name.strip() or not (line.isascii() and line.isprintable()):
                raise click.UsageError(f"'{name}' is not a header: type one as --header 'Name: value'")
            headers[name.strip().title()] = value.strip()
        return headers | self._login("Authorization" in headers)

    def _login(self, has_login: bool) -> dict[str, str]:
        """Return the login header; typed options take precedence over the environment."""
        if self.user is not None and self.token_file is not None:
            raise click.UsageError("--user and --token-file are two logins: leave one of them out")
        if self.user is not None:
            password = os.environ.get("SPARK_ELASTIC_PASSWORD")
            if password is None:
                password = click.prompt(f"Password of {self.user}", hide_input=True, err=True)
            return basic_login(self.user, password)
        if self.token_file is not None:
            return _bearer(str(self.token_file), self.token_file.read_text(errors="replace"))
        token = os.environ.get("SPARK_ELASTIC_TOKEN")
        return _bearer("SPARK_ELASTIC_TOKEN", token) if token and not has_login else {}


def _bearer(source: str, token: str) -> dict[str, str]:
    try:
        return bearer_login(token)
    except ValueError as error:
        raise click.UsageError(f"{source} has {error}") from None


def _tidy(url: str) -> str:
    try:
        return tidy_url(url)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


_OPTIONS = (
    click.option(
        "--url",
        help=f"Address of the application's Spark UI.  [env: SPARK_ELASTIC_URL; default: {_DEFAULT_URL}]",
    ),
    click.option(
        "--app", metavar="ID", help="Id or name of the application, to be found through its master."
    ),
    click.option(
        "--master-ui",
        metavar="URL",
        help="UI of the Standalone master, for --app.  "
        f"[env: SPARK_ELASTIC_MASTER_UI; default: {_DEFAULT_MASTER_UI}]",
    ),
    click.option(
        "--user",
        metavar="NAME",
        help="Log in with this name; asks for the password.  [env: SPARK_ELASTIC_PASSWORD]",
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Log in with the bearer token in this file.  [env: SPARK_ELASTIC_TOKEN, the token itself]",
    ),
    click.option(
        "--header",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="Send this with every request; no secret, since other users see what is typed.",
    ),
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
journal_option = click.option(
    "--journal",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Read this decision journal instead of asking a driver; the application may have ended.",
)


def asks_driver(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that locate the driver, as one argument `where`."""

    @functools.wraps(command)
    def with_where(
        url: str | None,
        app: str | None,
        master_ui: str | None,
        user: str | None,
        token_file: Path | None,
        header: tuple[str, ...],
        **rest: Any,
    ) -> None:
        where = Where(url=url, app=app, master_ui=master_ui, user=user, token_file=token_file, header=header)
        command(where=where, **rest)

    wrapped: Callable[..., None] = with_where
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def query_argument(*, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the argument QUERY; its names complete if the driver answers quickly."""
    return click.argument("query", required=required, shell_complete=_complete)


def _complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        typed = {name: ctx.params.get(name) for name in ("url", "app", "master_ui", "token_file")}
        header = tuple(ctx.params.get("header") or ())
        driver = Where(**typed, user=None, header=header).driver(timeout_s=_COMPLETION_S)
        queries = driver.get("/queries")["queries"]
        names = dict.fromkeys(name for query in queries for name in (title(query), query["id"]))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    except Exception:  # no error may appear in the line that the user is typing
        return []


def console() -> Console:
    """Return a console on standard output, wide enough for tables if it is not a terminal."""
    found = Console()
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found.width = _WIDTH_OF_A_LOG
    return found


def print_json(value: Json) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, indent=2))


def clock(ms: int) -> str:
    """Format a time (epoch ms) in the local time zone."""
    return f"{datetime.fromtimestamp(ms / 1_000):%Y-%m-%d %H:%M:%S}"
