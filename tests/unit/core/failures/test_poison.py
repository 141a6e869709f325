"""Tests that a micro-batch that keeps failing in the same way is noticed, and nothing else is."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic.core.events import Failure
from spark_elastic.core.failures.poison import IO_PATIENCE_MS, MOST_TRIES, PoisonWatch

FAILURE = Failure(
    error="Task 0 in stage 3.0 failed 4 times (TID 17) (10.0.0.5 executor 1): Row@1fab of "
    "/tmp/spark-0b5d8a4e-4a6c-4a56-9c6e-0d1f2a3b4c5d/x is no number",
    causes=("org.apache.spark.SparkException", "java.lang.NumberFormatException"),
    offsets='[{"topic":{"0":12}}]',
)
AGAIN = evolve(
    FAILURE,
    error="Task 1 in stage 12.0 failed 4 times (TID 230) (10.0.0.17 executor 2): Row@cafe of "
    "/tmp/spark-ffffffff-4a6c-4a56-9c6e-aaaaaaaaaaaa/x is no number",
)


def noted(*failures: Failure, every_ms: int = 0) -> list[bool]:
    watch = PoisonWatch()
    result = []
    for number, failure in enumerate(failures):
        result.append(watch.note(failure, number * every_ms))
        watch.validate()
    return result


def test_the_third_failure_of_one_kind_at_one_place_is_poison() -> None:
    assert MOST_TRIES == 3
    assert noted(FAILURE, AGAIN, FAILURE, AGAIN) == [False, False, True, True]


def test_another_error_or_another_place_begins_anew() -> None:
    others = (
        evolve(FAILURE, error="Connection reset"),
        evolve(FAILURE, causes=FAILURE.causes[:1]),
        evolve(FAILURE, offsets='[{"topic":{"0":13}}]'),
    )
    for other in others:
        assert noted(FAILURE, FAILURE, other, FAILURE, FAILURE) == [False] * 5


def test_an_outage_is_nobodys_poison() -> None:
    outage = evolve(
        FAILURE,
        error="Timed out while waiting for the Python worker to connect back",
        causes=("org.apache.spark.SparkException", "java.net.SocketTimeoutException"),
    )
    assert noted(*[outage] * 5) == [False] * 5
    assert noted(FAILURE, FAILURE, outage, FAILURE, FAILURE, FAILURE) == [False] * 5 + [True]


@pytest.mark.parametrize(
    "last",
    [
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "TimeoutError: timed out",
        "socket.gaierror: [Errno -2] Name or service not known",
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='sink', port=80): Max retries exceeded",
        "requests.exceptions.ReadTimeout: HTTPConnectionPool(host='sink', port=80): Read timed out.",
        "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL",
    ],
)
def test_an_outage_that_python_tells_of_is_nobodys_poison(last: str) -> None:
    causes = ("org.apache.spark.SparkException", "org.apache.spark.api.python.PythonException")
    trace = 'Traceback (most recent call last):\n  File "sink.py", line 7, in write\n    post(rows)\n'
    assert noted(*[evolve(FAILURE, error=trace + last, causes=causes)] * 5) == [False] * 5
    # Only the last line counts, not what a traceback contains before it.
    other = evolve(FAILURE, error=f"{trace}    # {last}\nKeyError: 'ConnectionError: '", causes=causes)
    assert noted(*[other] * 3)[-1]


@pytest.mark.parametrize(
    "failure",
    [
        evolve(FAILURE, error="the storage fails to rename", causes=("java.io.IOException",), of_io=True),
        evolve(
            FAILURE,
            error="Name node is in safe mode",
            causes=("java.io.UncheckedIOException", "org.apache.hadoop.ipc.RemoteException"),
            of_io=True,
        ),
        evolve(
            FAILURE,
            causes=("org.apache.hadoop.fs.s3a.AWSClientIOException", "com.amazonaws.SdkClientException"),
            of_io=True,
        ),
        evolve(FAILURE, error_class="CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT"),
        evolve(
            FAILURE, error="Error: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store files"
        ),
    ],
)
def test_storage_that_fails_is_nobodys_poison(failure: Failure) -> None:
    assert noted(*[failure] * 5, every_ms=IO_PATIENCE_MS) == [False] * 5


@pytest.mark.parametrize(
    "causes",
    [
        ("org.apache.spark.SparkException", "java.io.IOException"),
        ("py4j.Py4JException",),
        (
            "org.apache.spark.sql.execution.streaming.sources.ForeachBatchUserFuncException",
            "com.fasterxml.jackson.core.JsonParseException",
        ),
    ],
    ids=["task", "python", "scala"],
)
def test_data_that_cannot_be_read_is_poison_once_it_can_be_no_storage_that_is_away(
    causes: tuple[str, ...],
) -> None:
    failure = evolve(FAILURE, error="Not an Avro data file", causes=causes, of_io=True)
    assert noted(*[failure] * 5, every_ms=IO_PATIENCE_MS // 4) == [False] * 4 + [True]
    assert noted(*[failure] * 3, every_ms=IO_PATIENCE_MS) == [False, False, True]


def test_the_time_for_storage_begins_with_the_first_failure_of_a_kind() -> None:
    failure = evolve(FAILURE, of_io=True)
    other = evolve(failure, error="Not a Parquet file")
    assert noted(failure, other, other, other, every_ms=IO_PATIENCE_MS * 2 // 5) == [False] * 4


def test_what_is_no_fault_of_storage_is_poison_under_the_driver_too() -> None:
    failure = evolve(FAILURE, error="no such key", causes=("java.util.NoSuchElementException",))
    assert noted(*[failure] * 3)[-1]


def test_progress_begins_anew() -> None:
    watch = PoisonWatch()
    assert not watch.note(FAILURE, 0)
    assert not watch.note(FAILURE, 0)
    watch.progressed()
    watch.validate()
    assert not watch.note(FAILURE, 0)
    assert watch.times == 1


def test_there_is_no_poison_before_a_batch_is_planned() -> None:
    for offsets in ("", "[]", "[-]", "[-, -]", "{0: -, orders: -}"):
        assert noted(*[evolve(FAILURE, offsets=offsets)] * 5) == [False] * 5
    for offsets in ("[-, 5]", "{0: -, orders: 7}", "0"):
        assert noted(*[evolve(FAILURE, offsets=offsets)] * 3)[-1]
