"""The halves of a run, batch and streaming, and the requirements of their programs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import evolve, field, frozen
from hypothesis.strategies import SearchStrategy

from integration import delta
from integration.differential import compare, data, harness, large, script, sources, strategies, tables
from integration.differential.application import Pair, applications
from integration.differential.compare import Difference, Results
from integration.differential.streams import compare as stream_compare
from integration.differential.streams import harness as stream_harness
from integration.differential.streams import program as stream_program
from integration.differential.streams.strategies import streams
from integration.streaming.launch import AT_ONCE

_IMPORT_OF_OURS = re.compile(r"^from integration\..*\n", re.MULTILINE)


@frozen(kw_only=True)
class Half:
    """The generation, printing and comparison of one half's programs.

    `modules` define what the programs call. The applications have these settings, this heap, and the numbers
    of `slots` in successive rounds. A failing program is shrunk for `shrinking_s` toward one that has at
    least the `simple` parts. `timed`: a slower run is a finding. `on_cluster`: with the plugin, programs run
    on executors. `jars` returns additional jars.
    """

    programs: SearchStrategy[Any]
    body: Callable[[Any], str]
    differences: Callable[[Any, Results, Results], list[Difference]]
    modules: Sequence[ModuleType]
    simple: frozenset[str]
    slots: Sequence[int]
    shrinking_s: float = 60.0
    heap: str = "1g"
    timed: bool = True
    on_cluster: bool = False
    jars: Callable[[], Sequence[Path]] = tuple
    conf: Mapping[str, str] = field(factory=dict)

    def applications(self, folder: Path, jars: Sequence[Path] = ()) -> AbstractContextManager[Pair]:
        """Return a context manager for the two applications that run its programs."""
        return applications(
            folder,
            on_cluster=self.on_cluster,
            slots=max(self.slots),
            heap=self.heap,
            jars=[*self.jars(), *jars],
            conf=self.conf,
        )

    def script(self, program: Any, slots: int, title: str) -> str:
        """Return an application that does not depend on this project and prints each action's results."""
        texts = [_IMPORT_OF_OURS.sub("", inspect.getsource(module)) for module in self.modules]
        return script.standalone(self.body(program), texts, slots, title, self.conf)


BATCH = Half(
    programs=strategies.programs(),
    body=script.body,
    differences=compare.differences,
    modules=(data, harness),
    simple=frozenset({sources.SIMPLEST.name, strategies.ACTIONS[0]}),
    slots=(4, 2, 8, 1, 16, 3),
)
LARGE = Half(
    programs=large.large_programs(),
    body=script.body,
    differences=compare.differences,
    modules=(data, harness),
    simple=BATCH.simple,
    slots=large.SLOTS,
    heap=large.HEAP,
)
TABLES = evolve(BATCH, programs=tables.table_programs(), jars=delta.jars, conf=delta.CONF)
STREAMING = Half(
    programs=streams(),
    body=stream_program.body,
    differences=stream_compare.differences,
    modules=(harness, stream_harness),
    simple=stream_program.SIMPLE,
    slots=(4,),
    # Its programs take five times as long.
    shrinking_s=240.0,
    # A move of the state is a pause that plain Spark does not have.
    timed=False,
    conf={
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        # Otherwise, half of the time of such a small micro-batch goes into Java's compiler.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.explicitParallelism": "ignore",
        "spark.elastic.stateStore.convert": "atStart",
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
        "spark.elastic.restartStrategy.type": "fixed-delay",
        "spark.elastic.restartStrategy.fixedDelay.attempts": "3",
        "spark.elastic.restartStrategy.fixedDelay.delay": "10ms",
        **AT_ONCE,
    },
)
EXECUTORS = evolve(STREAMING, programs=streams(lost=True), on_cluster=True)
