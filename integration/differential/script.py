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

#: The name of the part of a program that is to run.
PART = "PART"
_HEAD = '''\
"""{title}

usage: python {{this file}} plain
       spark-submit $(spark-elastic conf) {{this file}}
A stream with a hand-over is begun by plain Spark, in the same new folder:
       OUT=FOLDER PART=first python {{this file}} plain
       OUT=FOLDER PART=rest spark-submit $(spark-elastic conf) {{this file}}
"""

import os
import tempfile

{imports}
{modules}
DATA, OUT = tempfile.mkdtemp(), os.environ.get("OUT") or tempfile.mkdtemp()
PART = os.environ.get("PART", "all")
builder = SparkSession.builder.master("local[{slots}]")
for key, value in {conf}.items():
    builder.config(key, value)
spark = builder.config("spark.elastic.savepointDir", OUT + "/savepoints").getOrCreate()
spark.sparkContext.setCheckpointDir(OUT + "/checkpoints")

'''


def body(program: Program) -> str:
    """Return the text, which needs a session and the names of the harness and the data module."""
    lines = [f"spark.conf.set({key!r}, {value!r})" for key, value in program.settings]
    names = (f"frame{number}" for number in itertools.count(1))
    made: list[str] = []
    lines += frames(program.chain, names, made)
    asked = [_asked(program, number, action, made) for number, action in enumerate(program.actions)]
    acts = [entry for entries in asked for entry in entries]
    if program.threads:
        # The repetition of an action comes last, so that it benefits from what the others have taught.
        for entries in itertools.zip_longest(*asked):
            inner = ", ".join(f"{key!r}: lambda: {text}" for key, text in filter(None, entries))
            lines.append(f"together({{{inner}}})")
    else:
        lines += [f"act({key!r}, lambda: {text})" for key, text in acts]
    return "\n".join(lines) + "\n"


def frames(chain: Chain, names: Iterator[str], own: list[str]) -> Iterator[str]:
    """Yield the lines that create the frames of a chain, and append the names of its own frames to `own`."""
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
    """Return an action's name and text, and those of its repetition if only repeatability is guaranteed."""
    chain = action.of(program.chain)
    return [
        (name(number, action, time), _text(made[len(chain.steps) - 1], number, action, time))
        for time in range(1 + again(chain, action))
    ]


def again(chain: Chain, action: Action) -> bool:
    """Return whether an action is repeated; always where plain Spark only repeats its own result."""
    return action.twice or action.name == "taken" or chain.promise < Promise.ROWS


def name(number: int, action: Action, time: int) -> str:
    """Return the name of an action's result; the second `time` (1) differs from the first (0)."""
    return f"{number} {action.name}{' again' * time}"


def _text(frame: str, number: int, action: Action, time: int) -> str:
    # A new select is planned again, as in an application that creates its frames in a function.
    frame = f"{frame}.select('*')" if time else frame
    arguments: dict[str, Any] = dict(action.arguments)
    if action.name == "written":
        return (
            f"written({frame}, spark, {arguments['form']!r}, OUT + '/{number}-{time}', {arguments['by']!r})"
        )
    return f"{action.name}({', '.join([frame, *map(repr, arguments.values())])})"


def standalone(text: str, modules: Sequence[str], slots: int, title: str, conf: Mapping[str, str]) -> str:
    """Return an application with a program's text, the modules that it calls, and settings."""
    head = _HEAD.format(
        title=title, imports=IMPORTS, modules="\n\n".join(modules), slots=slots, conf=dict(conf)
    )
    end = "\nfor name, found in RESULTS.items():\n    print(name, found)\nspark.stop()\n"
    return head + text + end
