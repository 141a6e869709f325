"""The decision about a query whose run has failed: restart it, and when, or let it end.

The order is Flink's: a failure that a restart cannot repair is not retried, nor is a batch that fails in the
same way again and again; then the restart strategy is asked.
"""

from __future__ import annotations

import re
from typing import Literal

from attrs import frozen

from spark_elastic.core.events import Failure
from spark_elastic.core.failures.poison import PoisonWatch
from spark_elastic.core.failures.strategy import RestartStrategy

# ---- Detects failures that only the state store chosen by spark-elastic has. RocksDB lets a task open a
# store once. Spark's own store allows a second time, which a `foreachBatch` needs if it reads rows twice in
# one task. Checkpoint format 2 needs all partitions of a micro-batch to run, while a `foreachBatch` may read
# only some of its rows.


_OPENED_TWICE = "CANNOT_LOAD_STATE_STORE.UNRELEASED_THREAD_ERROR"
_SAID = re.compile(rf"\[{re.escape(_OPENED_TWICE)}\]|\bCheckpointInfo length: \d+, numPartitions: \d+")


def is_of_our_store(failure: Failure) -> bool:
    """Return whether a query with Spark's own store and format would not have failed this way."""
    return failure.error_class == _OPENED_TWICE or _SAID.search(failure.error) is not None


# Distinguishes failures that a restart can repair from those that recur on every attempt.
# A failure is recognized by the classes of its causes, by Spark's error conditions, and by words where Spark
# provides neither. All three are in tables, and the first matching rule decides. Failures without a match are
# worth a retry: lost executors, full memory, outages. If they then recur at the same place, `poison` handles
# them.


@frozen(kw_only=True)
class Verdict:
    """Whether to retry, and the code of the reason."""

    retry: bool
    reason: str


@frozen(kw_only=True)
class Rule:
    """One kind of failure: any of its classes, conditions or phrases is enough.

    `conditions` match a whole error condition or the part before its dot, `phrases` any part of the error.
    """

    verdict: Verdict
    classes: frozenset[str] = frozenset()
    conditions: re.Pattern[str] | None = None
    phrases: re.Pattern[str] | None = None

    def fits(self, failure: Failure, conditions: frozenset[str]) -> bool:
        """Return whether the failure, in which Spark named these `conditions`, is of this kind."""
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
        # Anything that Hive's metastore throws, even an outage, becomes an AnalysisException with this
        # condition.
        verdict=_TRANSIENT,
        conditions=_any_of("_LEGACY_ERROR_TEMP_3065"),
    ),
    Rule(
        # The state was written by another query, Spark version or provider than the one that reads it.
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
        # Files of the checkpoint are missing or incomplete: no restart brings them back.
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
        # The program does not fit its libraries, or uses an operation that Spark does not support.
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
        # The process that runs a Spark Connect client's foreachBatch ends with the first error, and only the
        # client can start another: a restart would meet a broken pipe, and report that instead.
        phrases=_any_of(r"\bFound error inside foreachBatch Python process\b"),
    ),
)

# These only wrap another failure, and so say nothing about it.
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
# An InterruptedIOException is ambiguous: timeouts use it, too.
_INTERRUPTIONS = frozenset({"java.lang.InterruptedException", "java.nio.channels.ClosedByInterruptException"})
# Spark begins a message with its condition in brackets; a trace has those of the causes as well.
_CONDITION = re.compile(r"\[([A-Z_][A-Z0-9_]*(?:\.[A-Z0-9_]+)?)\]")


def classify(failure: Failure) -> Verdict:
    """Judge a failure. A mere interruption was requested, and a restart should not undo it."""
    meant = set(failure.causes) - _WRAPPERS
    if meant and meant <= _INTERRUPTIONS:
        return _FATAL
    conditions = _conditions(failure)
    return next((rule.verdict for rule in _RULES if rule.fits(failure, conditions)), _TRANSIENT)


def _conditions(failure: Failure) -> frozenset[str]:
    """Return all conditions that Spark named, each also without the part after its dot."""
    named = {failure.error_class or "", *_CONDITION.findall(failure.error)} - {""}
    return frozenset(named | {name.partition(".")[0] for name in named})


StoreOf = Literal["user", "new", "ours"]
"""Who chose a state store: the user, or spark-elastic; its choice is new until a micro-batch is committed."""


@frozen(kw_only=True)
class Judgement:
    """`backoff_ms` is the wait before the next start, None if there will be none."""

    reason: str
    backoff_ms: int | None = None


def judge(
    failure: Failure, *, at: int, strategy: RestartStrategy, poison: PoisonWatch, store: StoreOf
) -> Judgement:
    """Judge a failure reported at `at` (epoch ms), and notify the strategy and the watch of it."""
    if store != "user" and is_of_our_store(failure):
        # Executors keep the store open for the whole run: another store needs another run.
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


# ---- The part of an error that is shown where there is room for one line.


_TRACEBACK = "Traceback (most recent call last):"


def summary(error: str) -> str:
    """Return the line in which Python reports the exception, if there is a traceback, else all of `error`.

    For an exception of a Java call, the line after it is included.
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
