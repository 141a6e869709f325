"""What is to become of a query whose run has failed: start it again, and when, or let it end.

The order is that of the model: what another start cannot repair is not tried; a batch that fails in the same
way again and again is not, either; then the restart strategy is asked.
"""

from __future__ import annotations

import re
from typing import Literal

from attrs import frozen

from spark_elastic.core.events import Failure
from spark_elastic.core.failures.poison import PoisonWatch
from spark_elastic.core.failures.strategy import RestartStrategy

# Tell failures that only the state store of our choice has.
# RocksDB lets a task open a store once. Spark's own store lets it do that again, as a `foreachBatch` makes
# happen that reads rows twice in one task. Checkpoint format 2 wants all partitions of a micro-batch to run,
# and a `foreachBatch` may read only some of its rows.


_OPENED_TWICE = "CANNOT_LOAD_STATE_STORE.UNRELEASED_THREAD_ERROR"
_SAID = re.compile(rf"\[{re.escape(_OPENED_TWICE)}\]|\bCheckpointInfo length: \d+, numPartitions: \d+")


def is_of_our_store(failure: Failure) -> bool:
    """Say whether a query with Spark's own store and format would not have failed so."""
    return failure.error_class == _OPENED_TWICE or _SAID.search(failure.error) is not None


# Tell failures that a restart can repair from those that come back however often one tries.
# A failure is known by the classes of its causes, by Spark's error conditions, and by words where Spark gives
# it neither. All three stand in tables, the first rule that fits decides, and what fits none is worth a
# retry: lost executors, full memory, outages. What then fails again and again at the same place is for
# `poison`.


@frozen(kw_only=True)
class Verdict:
    """Whether to retry, and the code of the reason."""

    retry: bool
    reason: str


@frozen(kw_only=True)
class Rule:
    """One kind of failure: any of its classes, conditions or phrases is enough.

    `conditions` match a whole error condition or what is before its dot, `phrases` any part of the error.
    """

    verdict: Verdict
    classes: frozenset[str] = frozenset()
    conditions: re.Pattern[str] | None = None
    phrases: re.Pattern[str] | None = None

    def fits(self, failure: Failure, conditions: frozenset[str]) -> bool:
        """Say whether the failure, in which Spark named these `conditions`, is of this kind."""
        if not self.classes.isdisjoint(failure.causes):
            return True
        if self.conditions is not None and any(map(self.conditions.fullmatch, conditions)):
            return True
        return self.phrases is not None and self.phrases.search(failure.error) is not None


_TRANSIENT = Verdict(retry=True, reason="failure_restart")
_ANALYSIS = Verdict(retry=False, reason="failure_analysis")
_STATE = Verdict(retry=False, reason="failure_incompatible_state")
_CHECKPOINT = Verdict(retry=False, reason="failure_missing_checkpoint")
_FATAL = Verdict(retry=False, reason="failure_fatal")


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


def _classes(package: str, *names: str) -> frozenset[str]:
    return frozenset(f"{package}.{name}" for name in names)


_RULES = (
    Rule(
        # Whatever Hive's metastore throws, an outage too, is made an AnalysisException with this condition.
        verdict=_TRANSIENT,
        conditions=_any_of("_LEGACY_ERROR_TEMP_3065"),
    ),
    Rule(
        # The query, the Spark or the provider that reads the state is not the one that wrote it.
        verdict=_STATE,
        classes=_classes(
            "org.apache.spark.sql.execution.streaming.state",
            "StateStoreBackendNotSupportedForTWSException",
            "StateStoreColumnFamilyMismatch",
            "StateStoreInvalidConfigAfterRestart",
            "StateStoreInvalidValueSchemaEvolution",
            "StateStoreInvalidVariableTypeChange",
            "StateStoreKeyRowFormatValidationFailure",
            "StateStoreKeySchemaNotCompatible",
            "StateStoreMultipleColumnFamiliesNotSupportedException",
            "StateStoreRemovingColumnFamiliesNotSupportedException",
            "StateStoreStateSchemaFilesThresholdExceeded",
            "StateStoreUnknownInternalColumnFamily",
            "StateStoreValueRowFormatValidationFailure",
            "StateStoreValueSchemaEvolutionThresholdExceeded",
            "StateStoreValueSchemaNotCompatible",
        ),
        conditions=_any_of(
            r"STATE_STORE_\w*SCHEMA\w*",
            r"STATE_STORE_(?:KEY|VALUE)_ROW_FORMAT_VALIDATION_FAILURE",
            r"STATE_STORE_INVALID_(?:CONFIG_AFTER_RESTART|PROVIDER|VARIABLE_TYPE_CHANGE)",
            r"STATE_STORE_UNKNOWN_INTERNAL_COLUMN_FAMILY",
            r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
            r"UNSUPPORTED_FEATURE\.(?:STATE_STORE_\w+|STORE_BACKEND_NOT_SUPPORTED_FOR_TWS)",
            r"CANNOT_LOAD_STATE_STORE\.(?:KEY|VALUE)_ROW_FORMAT_VALIDATION_FAILURE",
            r"CANNOT_LOAD_STATE_STORE\.CANNOT_READ_(?:CHECKPOINT|\w+_(?:KEY|VALUE)_SIZE)",
            r"CANNOT_LOAD_STATE_STORE\.INVALID_CHANGE_LOG_\w+_VERSION",
            r"INVALID_LOG_VERSION",
        ),
    ),
    Rule(
        # Files that the checkpoint should have are gone, or half of them are: no restart brings them back.
        verdict=_CHECKPOINT,
        classes=_classes(
            "org.apache.spark.sql.execution.streaming.state",
            "StateStoreCheckpointLocationNotEmpty",
            "StateStoreSnapshotFileNotFound",
            "StateStoreSnapshotPartitionNotFound",
        ),
        conditions=_any_of(
            r"BATCH_METADATA_NOT_FOUND",
            r"MALFORMED_LOG_FILE",
            r"STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",
            r"STREAMING_CHECKPOINT_MISSING_METADATA_FILE",
            r"STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
            r"CANNOT_LOAD_STATE_STORE\.CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT",
            r"CANNOT_LOAD_STATE_STORE\.CANNOT_READ_(?:DELTA_FILE_NOT_EXISTS|MISSING_SNAPSHOT_FILE)",
            r"CANNOT_LOAD_STATE_STORE\.CANNOT_READ_STREAMING_STATE_FILE",
            r"CANNOT_LOAD_STATE_STORE\.(?:INVALID_CHECKPOINT_LINEAGE|SNAPSHOT_PARTITION_ID_NOT_FOUND)",
        ),
        # The logs of offsets and commits still throw plain IllegalStateExceptions.
        phrases=_any_of(
            r"\bbatch \d+ doesn't exist",
            r"\bbatches \([\d, ]+\) don't +exist",
            r"\bIncomplete log file\b",
        ),
    ),
    Rule(
        # The plan is wrong, and it is the same plan each time.
        verdict=_ANALYSIS,
        classes=frozenset(
            {
                "org.apache.spark.sql.AnalysisException",
                "org.apache.spark.sql.catalyst.ExtendedAnalysisException",
                "org.apache.spark.sql.catalyst.parser.ParseException",
            }
        ),
        # A Python foreachBatch shows the JVM only its traceback.
        phrases=_any_of(r"\bpyspark\.errors\.exceptions\.\w+\.(?:Analysis|Parse)Exception\b"),
    ),
    Rule(
        # A program that does not fit its libraries, or asks Spark for what it cannot do.
        verdict=_FATAL,
        classes=_classes(
            "java.lang",
            "AbstractMethodError",
            "ClassFormatError",
            "ExceptionInInitializerError",
            "IllegalAccessError",
            "IncompatibleClassChangeError",
            "LinkageError",
            "NoClassDefFoundError",
            "NoSuchFieldError",
            "NoSuchMethodError",
            "UnsatisfiedLinkError",
            "UnsupportedClassVersionError",
            "VerifyError",
        )
        | {"java.io.NotSerializableException", "org.apache.spark.SparkUnsupportedOperationException"},
        # Another run writes to the same checkpoint: a restart would only take it away from that one.
        conditions=_any_of(r"CONCURRENT_STREAM_LOG_UPDATE", r"STREAMING_REAL_TIME_MODE"),
        # The process that runs a Spark Connect client's foreachBatch ends with the first error, and only
        # the client can start another: a restart would meet a broken pipe, and report that instead.
        phrases=_any_of(r"\bFound error inside foreachBatch Python process\b"),
    ),
)

# What only carries the failure of something else, and so says nothing about it.
_WRAPPERS = frozenset(
    {
        "com.google.common.util.concurrent.UncheckedExecutionException",
        "java.io.UncheckedIOException",
        "java.util.concurrent.ExecutionException",
        "org.apache.spark.sql.execution.streaming.sources.ForeachBatchUserFuncException",
        "org.apache.spark.sql.execution.streaming.sources.ForeachUserFuncException",
        "org.apache.spark.sql.streaming.StreamingQueryException",
    }
)
# Of an InterruptedIOException one cannot tell: timeouts use it, too.
_INTERRUPTIONS = frozenset({"java.lang.InterruptedException", "java.nio.channels.ClosedByInterruptException"})
# Spark begins a message with its condition in brackets; a trace has those of the causes as well.
_CONDITION = re.compile(r"\[([A-Z_][A-Z0-9_]*(?:\.[A-Z0-9_]+)?)\]")


def classify(failure: Failure) -> Verdict:
    """Judge a failure. An interruption alone is somebody's wish, not to be undone by a restart."""
    meant = set(failure.causes) - _WRAPPERS
    if meant and meant <= _INTERRUPTIONS:
        return _FATAL
    conditions = _conditions(failure)
    return next((rule.verdict for rule in _RULES if rule.fits(failure, conditions)), _TRANSIENT)


def _conditions(failure: Failure) -> frozenset[str]:
    """Return all conditions that Spark named, each also without what follows its dot."""
    named = {failure.error_class or "", *_CONDITION.findall(failure.error)} - {""}
    return frozenset(named | {name.partition(".")[0] for name in named})


StoreOf = Literal["user", "new", "ours"]
"""Whose choice a state store was: the user's, or ours; ours is new until a micro-batch is committed."""


@frozen(kw_only=True)
class Judgement:
    """`backoff_ms` is how long to wait before the next start, None if there is to be none."""

    reason: str
    backoff_ms: int | None = None


def judge(
    failure: Failure, *, at: int, strategy: RestartStrategy, poison: PoisonWatch, store: StoreOf
) -> Judgement:
    """Judge a failure that was heard of at `at` (epoch ms), and let strategy and watch take note of it."""
    if store != "user" and is_of_our_store(failure):
        # In the same run executors have the store open: another one takes another run.
        return Judgement(reason="failure_new_store" if store == "new" else "failure_our_store")
    verdict = classify(failure)
    if not verdict.retry:
        return Judgement(reason=verdict.reason)
    if poison.note(failure, at):
        return Judgement(reason="failure_poison")
    strategy.notify_failure(at)
    if not strategy.can_restart(at):
        return Judgement(reason="failure_no_restart")
    return Judgement(reason=verdict.reason, backoff_ms=strategy.backoff_ms(at))


# What is shown of an error where there is room for one line.


_TRACEBACK = "Traceback (most recent call last):"


def summary(error: str) -> str:
    """Return the line in which Python says what was raised, where there is a traceback, else all of `error`.

    What a call of Java's has thrown stands in the line after it.
    """
    _, found, trace = error.rpartition(_TRACEBACK)
    if not found:
        return error
    lines = trace.splitlines()
    for number, line in enumerate(lines):
        if line and not line[0].isspace() and not line.startswith("…"):
            more = lines[number + 1] if number + 1 < len(lines) else ""
            return line.rstrip() + (more.rstrip() if more.startswith(":") else "")
    return error
