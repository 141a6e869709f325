"""Describe a checkpoint as lines and as data, and say what to do after its state has changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import asdict, evolve

from spark_elastic.core.reasons.reason import duration, size
from spark_elastic_tools.checkpoint.contents import Contents, picture, together, total, unevenness
from spark_elastic_tools.checkpoint.facts import HDFS, PROVIDERS, ROCKSDB, Checkpoint, Original
from spark_elastic_tools.checkpoint.judge import Target, again, partitions, refusal, target_of, unchangeable
from spark_elastic_tools.checkpoint.logs import Operator

_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


def lines(checkpoint: Checkpoint, contents: Sequence[Contents] | None, age_s: float) -> Iterator[str]:
    """Yield what `inspect` prints; without `contents` there are no rows and bytes.

    `age_s` is the age of the newest entry in the logs.
    """
    yield checkpoint.path
    for name, value in _rows(checkpoint, age_s):
        yield f"  {name:17} {value}"
    held = {(one.operator, one.store): one for one in contents or ()}
    for operator in checkpoint.operators:
        yield f"  {f'operator {operator.id}':17} {_title(operator)}"
        for store in operator.stores:
            one = held.get((operator.id, store))
            amount = f"{one.all.rows:>13,} rows  {size(one.all.bytes):>10}" if one is not None else ""
            yield f"    {store:30} {amount}".rstrip()
    for name, reason in _possible(checkpoint).items():
        yield f"  {name:17} {'possible' if reason is None else f'not possible: {reason}'}"
    if contents:
        parts = together(contents)
        yield ""
        yield from picture(parts)


def as_data(checkpoint: Checkpoint, contents: Sequence[Contents] | None, age_s: float) -> dict[str, Any]:
    """Return what `inspect --json` prints; without `contents` rows, bytes and parts are None."""
    held = {(one.operator, one.store): one for one in contents or ()}
    parts = together(contents) if contents is not None else None
    return {
        "path": checkpoint.path,
        "lastCommittedBatch": checkpoint.committed,
        "startedBatch": checkpoint.started,
        "interruptedChange": checkpoint.is_interrupted,
        "newestEntryAgeSeconds": round(age_s, 1),
        "writtenBy": checkpoint.written_by,
        "provider": checkpoint.provider,
        "providerClass": checkpoint.provider_class,
        "format": checkpoint.format,
        "partitions": checkpoint.partitions,
        "kept": _kept(checkpoint.original),
        **_sums(contents),
        "largestToMedian": unevenness(parts) if parts is not None else None,
        "operators": [
            {
                "id": operator.id,
                "name": operator.name,
                "keyed": operator.keyed,
                "stores": [_store(store, held.get((operator.id, store))) for store in operator.stores],
            }
            for operator in checkpoint.operators
        ],
        "changes": {
            name: {"possible": reason is None, "why": reason}
            for name, reason in _possible(checkpoint).items()
        },
    }


def next_start(before: Checkpoint, after: Target) -> Iterator[str]:
    """Yield what to set for the next start of the query, now that its state is as `after` says."""
    if after.provider == ROCKSDB and after.format == 2:
        yield (
            f"next: start the query; without the plugin, set {_FORMAT}=2 for it (Spark restores the number "
            "of partitions and the state store, but not the format)"
        )
    elif before.format == 2:
        yield f"next: start the query; its settings must not have {_FORMAT}=2 any more"
    else:
        yield "next: start the query; Spark restores the number of partitions and the state store"


def possible_ends(path: str, lacking: int | None) -> Iterator[str]:
    """Yield how to end a change of state, by going back or by deleting what is kept.

    `lacking` is the batch that the log of a file sink has no entry of, if there is such a sink.
    """
    command, path = "spark-elastic checkpoint", shlex.quote(path)
    if lacking is not None:
        yield (
            f"if it writes with Spark's file sink, the log in that folder needs batch {lacking}, which only "
            f"the plugin adds at its start: without it, go back (`{command} undo {path} --yes`), and do this "
            "again with --file-sink FOLDER"
        )
    yield f"the state before is kept: `{command} forget {path}` deletes it, `{command} undo {path}` goes back"


def consequences(checkpoint: Checkpoint, original: Original, file_sink: str | None) -> Iterator[str]:
    """Yield what it means to go back to what is kept."""
    yield (
        f"it would go back to batch {original.batch}, {partitions(original.partitions)} in {original.store}"
    )
    count = again(checkpoint, original)
    if count:
        yield (
            f"{count} {'batch' if count == 1 else 'batches'} of its query would run again with other rows or "
            "numbers: its sink would get rows twice, or lose some if it leaves out the numbers that it knows"
        )
    if file_sink is None and (count or not original.has_begun):
        yield "if its query writes with Spark's file sink, add --file-sink FOLDER, or rows would be lost"


def _rows(checkpoint: Checkpoint, age_s: float) -> Iterator[tuple[str, str]]:
    committed = checkpoint.committed
    yield "committed", "no batch" if committed is None else f"batch {committed}, {_age(age_s)}"
    if checkpoint.started is not None:
        kind = "a change of its state that was cut short" if checkpoint.is_rewrite else "by its query"
        yield "started", f"batch {checkpoint.started}, {kind}; not committed"
    elif checkpoint.has_work:
        yield "started", "a change of its state that was cut short"
    yield "written by", checkpoint.written_by
    if checkpoint.operators:
        yield "state store", checkpoint.store
        yield "partitions", str(checkpoint.partitions)
    if checkpoint.original is not None:
        kept = checkpoint.original
        yield "kept", f"the state of batch {kept.batch}, {partitions(kept.partitions)} in {kept.store}"


def _age(age_s: float) -> str:
    return f"the newest entry is {duration(max(age_s, 0) * 1000)} old"


def _title(operator: Operator) -> str:
    name = operator.name or "not recorded by the Spark that wrote it"
    return name if operator.keyed is not False else f"{name}, without keys: all its state is in one partition"


def _possible(checkpoint: Checkpoint) -> dict[str, str | None]:
    """Return the reason against each change, None where it is possible."""
    reason = unchangeable(checkpoint)
    if reason is not None:
        return {"change": reason}
    here = Target(checkpoint.partitions, str(checkpoint.provider), checkpoint.format)
    found = {"repartition": refusal(checkpoint, evolve(here, partitions=here.partitions + 1))}
    for provider in (ROCKSDB, HDFS):
        target = target_of(checkpoint, provider)
        if target != here:
            found[f"convert {provider}"] = refusal(checkpoint, target)
    return found


def _kept(original: Original | None) -> dict[str, Any] | None:
    if original is None:
        return None
    return {
        "batch": original.batch,
        "partitions": original.partitions,
        "provider": PROVIDERS.get(original.provider_class),
        "format": original.format,
    }


def _sums(contents: Sequence[Contents] | None) -> dict[str, int | None]:
    held = total(one.all for one in contents) if contents is not None else None
    return {"rows": held.rows if held else None, "bytes": held.bytes if held else None}


def _store(name: str, held: Contents | None) -> dict[str, Any]:
    if held is None:
        return {"name": name, "rows": None, "bytes": None, "partitions": None}
    return {"name": name, **asdict(held.all), "partitions": [asdict(part) for part in held.parts]}
