"""A program as the text of a PySpark application."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from integration.differential.program import Action, Chain, Program, Promise

IMPORTS = """\
from pyspark import StorageLevel
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
"""

_HEAD = '''\
"""{title}

usage: python {{this file}} plain
       spark-submit $(spark-elastic conf) {{this file}}
"""

import tempfile

{imports}
{modules}
DATA, OUT = tempfile.mkdtemp(), tempfile.mkdtemp()
builder = SparkSession.builder.master("local[{slots}]")
for key, value in {conf}.items():
    builder.config(key, value)
spark = builder.config("spark.elastic.savepointDir", OUT + "/savepoints").getOrCreate()
spark.sparkContext.setCheckpointDir(OUT + "/checkpoints")

'''


def body(program: Program) -> str:
    """Return the text that needs a session and what the harness and the data have."""
    lines = [f"spark.conf.set({key!r}, {value!r})" for key, value in program.settings]
    names = (f"frame{number}" for number in itertools.count(1))
    made: list[str] = []
    lines += frames(program.chain, names, made)
    asked = [_asked(program, number, action, made) for number, action in enumerate(program.actions)]
    acts = [entry for entries in asked for entry in entries]
    if program.threads:
        # The same action again comes after all, so that it has seen what the others have taught.
        for entries in itertools.zip_longest(*asked):
            inner = ", ".join(f"{key!r}: lambda: {text}" for key, text in filter(None, entries))
            lines.append(f"together({{{inner}}})")
    else:
        lines += [f"act({key!r}, lambda: {text})" for key, text in acts]
    return "\n".join(lines) + "\n"


def frames(chain: Chain, names: Iterator[str], own: list[str]) -> Iterator[str]:
    """Give the lines that make the frames of a chain, and put the names of its own into `own`."""
    for step in chain.steps:
        inputs = own[-1:]
        for other in step.others:
            made: list[str] = []
            yield from frames(other, names, made)
            inputs.append(made[-1])
        if step.kind.before:
            yield step.kind.before.format(*inputs, **step.arguments).rstrip()
        frame = next(names)
        own.append(frame)
        yield f"{frame} = {step.kind.text.format(*inputs, **step.arguments)}"


def _asked(program: Program, number: int, action: Action, made: list[str]) -> list[tuple[str, str]]:
    """Return name and text of an action, and of the same once more where only repetition is promised."""
    chain = action.of(program.chain)
    return [
        (name(number, action, time), _text(made[len(chain.steps) - 1], number, action, time))
        for time in range(1 + again(chain, action))
    ]


def again(chain: Chain, action: Action) -> bool:
    """Tell whether an action is run once more: always where plain Spark only repeats itself."""
    return action.twice or action.name == "taken" or chain.promise < Promise.ROWS


def name(number: int, action: Action, time: int) -> str:
    """Name what comes of an action, the second `time` apart from the first (0)."""
    return f"{number} {action.name}{' again' * time}"


def _text(frame: str, number: int, action: Action, time: int) -> str:
    # Selected again it is planned again, as it is in an application that makes its frames in a function.
    frame = f"{frame}.select('*')" if time else frame
    arguments: dict[str, Any] = dict(action.arguments)
    if action.name == "written":
        return (
            f"written({frame}, spark, {arguments['form']!r}, OUT + '/{number}-{time}', {arguments['by']!r})"
        )
    return f"{action.name}({', '.join([frame, *map(repr, arguments.values())])})"


def standalone(text: str, modules: Sequence[str], slots: int, title: str, conf: Mapping[str, str]) -> str:
    """Return an application with the text of a program, that of the modules that it calls, and settings."""
    head = _HEAD.format(
        title=title, imports=IMPORTS, modules="\n\n".join(modules), slots=slots, conf=dict(conf)
    )
    end = "\nfor name, found in RESULTS.items():\n    print(name, found)\nspark.stop()\n"
    return head + text + end
