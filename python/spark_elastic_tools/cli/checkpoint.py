"""`spark-elastic checkpoint`: look at the checkpoint of a query that does not run, and change its state."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from spark_elastic.core.reasons.reason import duration, size
from spark_elastic_tools.checkpoint.contents import Contents, differences, total
from spark_elastic_tools.checkpoint.facts import (
    HDFS,
    ROCKSDB,
    Checkpoint,
    NoCheckpointError,
    read_checkpoint,
)
from spark_elastic_tools.checkpoint.judge import (
    Target,
    irreversible,
    partitions,
    refusal,
    target_of,
    unchangeable,
    unreadable,
)
from spark_elastic_tools.checkpoint.offline import Offline
from spark_elastic_tools.checkpoint.progress import progress
from spark_elastic_tools.checkpoint.report import (
    as_data,
    consequences,
    lines,
    next_start,
    possible_ends,
)
from spark_elastic_tools.checkpoint.session import HadoopFiles, JavaError, NoSparkError, session
from spark_elastic_tools.checkpoint.sink_log import FOLDER, cannot_end, later, unfit
from spark_elastic_tools.cli.signals import signals_interrupt
from spark_elastic_tools.live import shown

_EXIT_FAILED = 1
_EXIT_INTERRUPTED = 130
# A newer entry in the logs (s) is a hint that a query is running.
_RECENT_S = 60.0
_CUT_SHORT = "an earlier change of its state was cut short"

_F = TypeVar("_F", bound=Callable[..., Any])


@click.group()
def checkpoint() -> None:
    """Look at the checkpoint of a query that does not run, and change its state.

    PATH is the query's checkpointLocation: a path, or a URI of any file system that Spark has. Any stateful
    query's checkpoint will do, also of one that never had the plugin. Stop the query first. Needs PySpark 4.2
    or later, whichever Spark runs the query.
    """


def _spark_options(command: _F) -> _F:
    """Add the options that say how to start the Spark that does the work."""
    for option in reversed(
        (
            click.option(
                "--conf",
                "settings",
                multiple=True,
                metavar="KEY=VALUE",
                help="A setting of Spark, such as the credentials of a file system; repeat for more.",
            ),
            click.option(
                "--master", default="local[*]", show_default=True, help="The master of the Spark that works."
            ),
        )
    ):
        command = option(command)
    return command


_dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only say what would be done, with rows and bytes."
)

_file_sink_option = click.option(
    "--file-sink",
    metavar="FOLDER",
    help="The folder that the query writes to with Spark's file sink, if so. The log there has to follow.",
)


@checkpoint.command()
@click.argument("path")
@click.option("--quick", is_flag=True, help="Leave rows and bytes out: reads metadata only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_spark_options
def inspect(path: str, quick: bool, as_json: bool, settings: tuple[str, ...], master: str) -> None:
    """Show operators, stores and partitions, how even these are, and whether they can be changed.

    Rows and bytes are those of the keys and values, as of the last committed batch. Nothing is changed.
    """
    with _opened(path, settings, master) as opened:
        found = opened.read()
        contents: list[Contents] | None = None
        if not quick and unreadable(found) is None:
            contents = opened.measure(found)
        age_s = _age_s(found)
        if as_json:
            click.echo(json.dumps(as_data(found, contents, age_s), indent=2))
        else:
            for line in lines(found, contents, age_s):
                click.echo(shown(line))


@checkpoint.command()
@click.argument("path")
@click.argument("count", metavar="N", type=click.IntRange(1))
@_dry_run_option
@_file_sink_option
@_spark_options
def repartition(
    path: str, count: int, dry_run: bool, file_sink: str | None, settings: tuple[str, ...], master: str
) -> None:
    """Change the number of partitions of a checkpoint's state to N.

    The state is written as a further batch, read again and compared; if a row differs, everything goes back
    to what it was. The state before is kept until it is forgotten.
    """
    with _opened(path, settings, master) as opened:
        opened.change(lambda found: target_of(found, count=count), dry_run=dry_run, file_sink=file_sink)


@checkpoint.command()
@click.argument("path")
@click.option(
    "--to", required=True, type=click.Choice((ROCKSDB, HDFS)), help="The state store that it should be in."
)
@click.option(
    "--format",
    "form",
    type=click.IntRange(1, 2),
    help="The checkpoint format.  [default: 2 for rocksdb; hdfs has 1 only]",
)
@click.option("--partitions", "count", type=click.IntRange(1), help="Change their number, too.")
@_dry_run_option
@_file_sink_option
@_spark_options
def convert(
    path: str,
    to: str,
    form: int | None,
    count: int | None,
    dry_run: bool,
    file_sink: str | None,
    settings: tuple[str, ...],
    master: str,
) -> None:
    """Move the state into another state store, or into the other format of RocksDB.

    \b
    spark-elastic checkpoint convert PATH --to rocksdb           so that the plugin can rescale the query
    spark-elastic checkpoint convert PATH --to hdfs --format 1   back to Spark's defaults

    The state is written as a further batch, read again and compared; if a row differs, everything goes back
    to what it was. The state before is kept until it is forgotten. If a batch has begun and is not committed,
    its number stays, and only RocksDB with format 2 is possible.
    """  # noqa: D301  # click wants the character itself
    with _opened(path, settings, master) as opened:
        opened.change(lambda found: target_of(found, to, count, form), dry_run=dry_run, file_sink=file_sink)


@checkpoint.command()
@click.argument("path")
@click.option("--yes", is_flag=True, help="Go back; without it, only say what that would mean.")
@_file_sink_option
@_spark_options
def undo(path: str, yes: bool, file_sink: str | None, settings: tuple[str, ...], master: str) -> None:
    """Go back to the state before the newest change, unless it has been forgotten.

    Batches that the query has committed since then would run again.
    """
    with _opened(path, settings, master) as opened:
        opened.undo(yes=yes, file_sink=file_sink)


@checkpoint.command()
@click.argument("path")
@_spark_options
def forget(path: str, settings: tuple[str, ...], master: str) -> None:
    """Delete what is kept of the state before the newest change.

    A query with the plugin does so itself, some time after (spark.elastic.stateStore.keepOriginal).
    """
    with _opened(path, settings, master) as opened:
        opened.forget()


# ---- What the commands have in common


class _Opened:
    """A checkpoint and the Spark that works on it."""

    def __init__(self, spark: Any, path: str) -> None:
        self._files = HadoopFiles(spark, path)
        self._path = self._files.root
        self._spark = spark
        self._offline = Offline(spark, self._path)

    def read(self) -> Checkpoint:
        """Read its metadata. Raises NoCheckpointError and JavaError."""
        return read_checkpoint(self._files, self._path)

    def measure(self, found: Checkpoint) -> list[Contents]:
        """Read all its state. Raises JavaError."""
        with self._progress("reading", found):
            return [
                self._offline.measure(operator, store, found.partitions) for operator, store in found.stores
            ]

    def change(self, wanted: Callable[[Checkpoint], Target], *, dry_run: bool, file_sink: str | None) -> None:
        """Change its state, compare, and report. Raises ClickException, NoCheckpointError and JavaError."""
        began = time.monotonic()
        found = self._ready(self.read(), dry_run=dry_run)
        sink = _SinkLog(self._spark, file_sink) if file_sink is not None else None
        target = wanted(found)
        self._check(refusal(found, target))
        if sink is not None and found.committed is not None and not found.has_begun:
            sink.check(unfit(sink.names, found.committed))
        self._warn_of_a_query(found)
        before = self.measure(found)
        what = f"{partitions(found.partitions)} in {found.store} to {target}"
        held = total(one.all for one in before)
        amount = f"{held.rows:,} rows, {size(held.bytes)}"
        if dry_run:
            click.echo(shown(f"would change {what}: {amount}; nothing is changed"))
            return
        self._check_unchanged(found)
        with self._progress("writing", found):
            batch = self._offline.rewrite(target)
        self._compare(before, found)
        is_further = batch != found.committed
        if file_sink is not None and is_further:
            self._offline.fill_sink_log(file_sink, batch)
        took = duration((time.monotonic() - began) * 1000)
        how = f"as batch {batch}" if is_further else f"in batch {batch}"
        click.echo(shown(f"changed {what} {how}: {amount}, all the same afterwards, in {took}"))
        lacking = batch if is_further and file_sink is None else None
        for line in (*next_start(found, target), *possible_ends(self._path, lacking)):
            click.echo(shown(line))

    def undo(self, *, yes: bool, file_sink: str | None) -> None:
        """Go back to what is kept. Raises ClickException, NoCheckpointError and JavaError."""
        found = self.read()
        if found.has_work or (found.is_rewrite and found.original is None):
            before, found = found, self._recovered(found)
            if before.is_being_undone or _form(before) == _form(found):
                return
        original = found.original
        if original is None:
            raise self._refused("nothing is kept of an earlier state, so there is nothing to go back to")
        self._check(irreversible(found, original))
        sink = _SinkLog(self._spark, file_sink) if file_sink is not None else None
        if sink is not None:
            sink.check(cannot_end(sink.names, original.batch))
        self._warn_of_a_query(found)
        if not yes:
            raise click.ClickException(
                shown(
                    f"{self._path}: {'; '.join(consequences(found, original, file_sink))}; add --yes to do it"
                )
            )
        self._check_unchanged(found)
        # A query that starts in between fails for the entries, instead of leaving batches out.
        if sink is not None:
            sink.end(original.batch)
        self._offline.undo(original.change)
        now = self.read()
        held = total(one.all for one in self.measure(now))
        click.echo(
            shown(
                f"went back to batch {original.batch}, {partitions(now.partitions)} in {now.store}: "
                f"{held.rows:,} rows, {size(held.bytes)}"
            )
        )
        for line in next_start(found, Target(now.partitions, str(now.provider), now.format)):
            click.echo(shown(line))

    def forget(self) -> None:
        """Delete what is kept. Raises NoCheckpointError and JavaError."""
        found = self.read()
        if found.has_work:
            found = self._recovered(found)
        original = found.original
        if original is None:
            click.echo("nothing is kept of an earlier state")
            return
        self._offline.forget()
        click.echo(
            shown(
                f"deleted what was kept of batch {original.batch}, {partitions(original.partitions)} in "
                f"{original.store}"
            )
        )

    def _ready(self, found: Checkpoint, *, dry_run: bool) -> Checkpoint:
        """Return it without an interrupted change; refuse one whose state cannot be changed."""
        self._check(unchangeable(found))
        if not found.is_interrupted:
            return found
        if dry_run:
            click.echo(f"{_CUT_SHORT}: it would be completed or undone first", err=True)
            return found
        return self._recovered(found)

    def _recovered(self, found: Checkpoint) -> Checkpoint:
        """Complete or undo a change that was cut short."""
        # The shim knows what it wrote itself. Spark's own re-partitioning leaves only the start of a batch.
        if not self._offline.recover() and found.is_rewrite and found.started is not None:
            self._offline.forget()  # only the change whose original is kept can be undone
            self._offline.undo(found.started)
        now = self.read()
        click.echo(
            f"{_CUT_SHORT}: it is {'undone' if _form(now) == _form(found) else 'completed'} now", err=True
        )
        return now

    def _compare(self, before: Sequence[Contents], found: Checkpoint) -> None:
        try:
            now = self.read()
            different = differences(before, self.measure(now))
        except (JavaError, NoCheckpointError) as error:
            different = [f"it cannot be read: {error}"]
        if not different:
            return
        assert found.committed is not None
        self._offline.undo(found.committed + 1)
        raise click.ClickException(
            "\n".join(
                (
                    "the state is not the same afterwards, so the checkpoint is again what it was:",
                    *map(shown, different),
                    "keep a copy of it, and report this with these lines",
                )
            )
        )

    def _check(self, reason: str | None) -> None:
        if reason is not None:
            raise self._refused(reason)

    def _refused(self, reason: str) -> click.ClickException:
        return click.ClickException(shown(f"{self._path}: {reason}"))

    def _warn_of_a_query(self, found: Checkpoint) -> None:
        age_s = _age_s(found)
        if 0 <= age_s < _RECENT_S:
            click.echo(
                f"its newest batch is {duration(age_s * 1000)} old: if its query is still running, stop it",
                err=True,
            )

    def _check_unchanged(self, found: Checkpoint) -> None:
        now = self.read()
        if (now.committed, now.started) != (found.committed, found.started):
            self._check(
                f"batch {now.newest} was started a moment ago: a query is running on it; stop it first"
            )

    @contextmanager
    def _progress(self, what: str, found: Checkpoint) -> Iterator[None]:
        steps = [f"operator {operator}, {store}" for operator, store in found.stores]
        with progress(self._spark.sparkContext, what, steps):
            yield


class _SinkLog:
    """The log of Spark's file sink in the folder that it writes to. All methods raise JavaError."""

    def __init__(self, spark: Any, folder: str) -> None:
        self._files = HadoopFiles(spark, folder)
        self._folder = folder
        self.names = self._files.names(FOLDER)

    def check(self, reason: str | None) -> None:
        """Raise a ClickException for a reason."""
        if reason is not None:
            raise click.ClickException(shown(f"{self._folder}: {reason}"))

    def end(self, batch: int) -> None:
        """Delete the entries after a batch, the newest one first."""
        for name in later(self.names, batch):
            self._files.delete(f"{FOLDER}/{name}")


def _age_s(found: Checkpoint) -> float:
    return time.time() - found.changed_ms / 1000


def _form(found: Checkpoint) -> tuple[object, ...]:
    return found.committed, found.partitions, found.provider_class, found.format


@contextmanager
def _opened(path: str, settings: Sequence[str], master: str) -> Iterator[_Opened]:
    """Start Spark for a checkpoint; what goes wrong is one message and the exit code 1."""
    conf = _conf(settings)
    try:
        with signals_interrupt(), session(master, conf) as spark:
            yield _Opened(spark, path)
    except (NoSparkError, NoCheckpointError) as error:
        raise click.ClickException(str(error)) from error
    except JavaError as error:
        raise click.ClickException(shown(f"{path}: {error}")) from error
    except KeyboardInterrupt:
        click.echo(
            "interrupted: a change that has begun is completed or undone by the same command, or by a start "
            "of the query with the plugin",
            err=True,
        )
        sys.exit(_EXIT_INTERRUPTED)


def _conf(settings: Sequence[str]) -> Mapping[str, str]:
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.startswith("spark."):
            raise click.UsageError(
                f"'{key}' is no setting of Spark: type --conf spark.KEY=VALUE; a setting of Hadoop, such as "
                "fs.s3a.endpoint, is spark.hadoop.fs.s3a.endpoint"
            )
        found[key] = value
    return found
