"""The command that a user typed: which program it runs, where arguments can be added, and its settings."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from attrs import frozen

from spark_elastic.installation import Spark, installed_spark, spark_in
from spark_elastic.spark_conf import (
    DRIVER_CLASS_PATH,
    JARS,
    default_properties_file,
    read_properties,
    submit_arguments,
)

SUBMIT = "spark-submit"
PROGRAMS = (SUBMIT, "pyspark", "spark-sql")
_TYPE = "type spark-elastic compare -- spark-submit app.py"
#: Options of spark-submit without a value; all others have one.
_SWITCHES = frozenset(
    (
        *("--help", "-h", "--supervise", "--usage-error", "--verbose", "-v", "--version"),
        "--load-spark-defaults",
    )
)
_FLAGS = {JARS: "--jars", DRIVER_CLASS_PATH: "--driver-class-path"}


class CommandError(Exception):
    """A command cannot be compared; the message says what was found, what is allowed and what to type."""


@frozen(kw_only=True)
class Command:
    """A command: its `words`, of which the first is the program and those up to `end` are Spark's options."""

    words: tuple[str, ...]
    end: int

    @property
    def program(self) -> str:
        """The program, as it was typed."""
        return self.words[0]

    @property
    def options(self) -> tuple[str, ...]:
        """The words that may be Spark's options."""
        return self.words[1 : self.end]

    def value(self, option: str) -> str | None:
        """Return the last value of one of Spark's options, None if it is not there."""
        found = None
        for number, word in enumerate(self.options):
            name, equals, value = word.partition("=")
            if name == option:
                found = value if equals else next(iter(self.options[number + 1 :]), "")
        return found

    def adding(self, settings: Mapping[str, str], places: Mapping[str, str]) -> list[str]:
        """Return the command with settings that override its own, and with `places` such as {side} filled in.

        Lists of jars are added as options, since these override both the properties and what was typed.
        """
        words = [filled(word, places) for word in self.words]
        return [*words[: self.end], *arguments(settings), *words[self.end :]]


def arguments(settings: Mapping[str, str]) -> list[str]:
    """Return settings as arguments of spark-submit."""
    return [
        word
        for key, value in settings.items()
        for word in ((_FLAGS[key], value) if key in _FLAGS else ("--conf", f"{key}={value}"))
    ]


def filled(word: str, places: Mapping[str, str]) -> str:
    """Return a word with places such as {side} filled in."""
    for place, value in places.items():
        word = word.replace(place, value)
    return word


def parse(words: Sequence[str]) -> Command:
    """Return the command in these words. Raises CommandError if it cannot be compared."""
    if not words:
        raise CommandError(f"there is no command after --: {_TYPE}")
    name = PurePath(words[0]).name
    if name not in PROGRAMS:
        raise CommandError(f"'{words[0]}' is none of {', '.join(PROGRAMS)}: {_TYPE}")
    # The other two take Spark's options anywhere among their own.
    end = _first_argument(words) if name == SUBMIT else len(words)
    command = Command(words=tuple(words), end=end)
    if name == SUBMIT and end == len(words):
        raise CommandError(f"'{shlex.join(words)}' names no application: {_TYPE}")
    return command


def _first_argument(words: Sequence[str]) -> int:
    """Return the index of the application, which is the first word that belongs to no option."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 1 if words[at] in _SWITCHES or "=" in words[at] else 2
    return min(at, len(words))


def settings_of(command: Command, environment: Mapping[str, str], home: Path | None) -> dict[str, str]:
    """Return Spark's settings as the command and its properties file give them.

    Raises CommandError if the file cannot be read, or if the driver would run on another machine, where
    nothing can be measured from here.
    """
    typed = command.value("--properties-file")
    defaults = default_properties_file(environment, home)
    files = [Path(typed)] if typed is not None else [defaults] if defaults is not None else []
    if typed is not None and defaults is not None and "--load-spark-defaults" in command.options:
        files.insert(0, defaults)
    conf: dict[str, str] = {}
    for file in files:
        try:
            conf.update(read_properties(file))
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file} cannot be read ({error}): name another --properties-file") from error
    conf.update(submit_arguments(shlex.join(command.options)))
    mode = command.value("--deploy-mode") or conf.get("spark.submit.deployMode", "client")
    if mode != "client":
        raise CommandError(
            f"deploy mode {mode} runs the driver on another machine, where its event log cannot be read "
            "from here: type --deploy-mode client"
        )
    return conf


def home_of(command: Command, environment: Mapping[str, str]) -> Path | None:
    """Return the folder of the Spark that the command runs, None if it is not known.

    Raises CommandError if there is no such program.
    """
    found = shutil.which(command.program, path=environment.get("PATH"))
    if found is None:
        raise CommandError(
            f"{command.program} is not on the PATH, or cannot be executed: type its whole path, such as "
            "/opt/spark/bin/spark-submit"
        )
    if environment.get("SPARK_HOME"):
        return Path(environment["SPARK_HOME"])
    above = Path(os.path.realpath(found)).parent.parent
    homes = (above, *sorted(above.glob("lib/python*/site-packages/pyspark")))
    return next((home for home in homes if spark_in(home) is not None), None)


def spark_of(home: Path | None) -> Spark | None:
    """Return the Spark in a folder, or the one that is installed beside this Python."""
    return (spark_in(home) if home is not None else None) or installed_spark()
