"""Tests of which failures are worth a retry, by Spark's exception classes and error conditions."""

from __future__ import annotations

import pytest

from spark_elastic.core.events import Failure
from spark_elastic.core.failures.judge import classify

SPARK = "org.apache.spark.SparkException"
STATE = "org.apache.spark.sql.execution.streaming.state."
ABORTED = "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times"


@pytest.mark.parametrize(
    ("reason", "causes", "error_class", "error"),
    [
        ("restart", (SPARK, "java.lang.OutOfMemoryError"), None, ABORTED),
        ("restart", (SPARK, "java.io.IOException"), None, "Connection reset by peer"),
        ("restart", (SPARK,), None, ABORTED),
        ("restart", (), None, ""),
        ("restart", ("java.io.FileNotFoundException",), None, "an input file, deleted meanwhile"),
        ("restart", (SPARK,), "CANNOT_LOAD_STATE_STORE.ROCKSDB_STORE_PROVIDER_OUT_OF_MEMORY", ""),
        ("restart", (SPARK,), "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED", ""),
        ("restart", (SPARK,), "CANNOT_LOAD_STATE_STORE.UNEXPECTED_FILE_SIZE", ""),
        ("restart", (SPARK,), "STATE_STORE_COMMIT_VALIDATION_FAILED", ""),
        ("restart", ("org.apache.spark.sql.AnalysisException",), "_LEGACY_ERROR_TEMP_3065", "metastore"),
        ("restart", ("java.io.InterruptedIOException",), None, "timed out"),
        ("restart", (SPARK, "java.lang.InterruptedException"), None, "a pool was shut down"),
        ("analysis", ("org.apache.spark.sql.AnalysisException",), "TABLE_OR_VIEW_NOT_FOUND", ""),
        ("analysis", (SPARK, "org.apache.spark.sql.catalyst.ExtendedAnalysisException"), None, ""),
        ("analysis", ("org.apache.spark.sql.catalyst.parser.ParseException",), "PARSE_SYNTAX_ERROR", ""),
        (
            "analysis",
            ("py4j.Py4JException",),
            None,
            "Return Message: Traceback\npyspark.errors.exceptions.captured.AnalysisException: [X] no table",
        ),
        ("incompatible_state", (SPARK, STATE + "StateStoreKeySchemaNotCompatible"), None, ABORTED),
        ("incompatible_state", (SPARK,), "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", ""),
        ("incompatible_state", (SPARK,), "STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMPATIBLE", ""),
        (
            "incompatible_state",
            ("org.apache.spark.SparkRuntimeException",),
            "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
            "",
        ),
        (
            "incompatible_state",
            ("org.apache.spark.SparkUnsupportedOperationException",),
            "UNSUPPORTED_FEATURE.STORE_BACKEND_NOT_SUPPORTED_FOR_TWS",
            "",
        ),
        ("incompatible_state", (SPARK,), "CANNOT_LOAD_STATE_STORE.KEY_ROW_FORMAT_VALIDATION_FAILURE", ""),
        ("incompatible_state", (SPARK,), "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_KEY_SIZE", ""),
        ("incompatible_state", (SPARK,), "INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION", ""),
        (
            "incompatible_state",
            (SPARK,),
            None,
            ABORTED + ": [STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match",
        ),
        ("missing_checkpoint", (SPARK,), "CANNOT_LOAD_STATE_STORE.CANNOT_READ_MISSING_SNAPSHOT_FILE", ""),
        (
            "missing_checkpoint",
            (SPARK, SPARK),
            "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED",
            "[CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS] An error occurred",
        ),
        ("missing_checkpoint", (), "STREAMING_CHECKPOINT_MISSING_METADATA_FILE", ""),
        ("missing_checkpoint", (), "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY", ""),
        (
            "missing_checkpoint",
            ("org.apache.spark.SparkFileNotFoundException",),
            "BATCH_METADATA_NOT_FOUND",
            "",
        ),
        ("missing_checkpoint", ("java.lang.IllegalStateException",), None, "batch 7 doesn't exist"),
        (
            "missing_checkpoint",
            ("java.lang.IllegalStateException",),
            None,
            "batches (3, 4) don't exist (startId: Some(3), endId: Some(5))",
        ),
        ("fatal", ("java.lang.NoClassDefFoundError", "java.lang.ClassNotFoundException"), None, "a/B"),
        ("fatal", (SPARK, "java.io.NotSerializableException"), None, "Task not serializable"),
        ("fatal", (SPARK,), "CONCURRENT_STREAM_LOG_UPDATE", ""),
        ("fatal", (), "STREAMING_REAL_TIME_MODE.SINK_NOT_SUPPORTED", ""),
        (
            "fatal",
            ("org.apache.spark.api.python.PythonException",),
            "PYTHON_EXCEPTION",
            "[PYTHON_EXCEPTION] [session: s] Found error inside foreachBatch Python process: Traceback",
        ),
        ("fatal", ("java.lang.InterruptedException",), None, "null"),
        ("fatal", ("java.io.UncheckedIOException", "java.nio.channels.ClosedByInterruptException"), None, ""),
    ],
)
def test_failures_are_told_apart(
    reason: str, causes: tuple[str, ...], error_class: str | None, error: str
) -> None:
    verdict = classify(Failure(error=error, error_class=error_class, causes=causes))
    assert verdict.reason == f"failure_{reason}"
    assert verdict.retry == (reason == "restart")
