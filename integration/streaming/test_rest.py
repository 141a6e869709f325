"""Tests of the REST API on a real driver: reads, changes, hostile clients, and a policy that is away."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.spark_minor import MOVES_STATE, SPARK_MINOR
from integration.streaming.driver import Driver, policies_of
from integration.streaming.http import TIMEOUT_S, Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONF = {
    **WITH_PLUGIN,
    "spark.ui.enabled": "true",
    "spark.elastic.scheduler-mode": "adaptive",
    # Each query may use all slots: their lower bounds do not add up.
    "spark.elastic.query.counts.slotSharingGroup": "both",
    "spark.elastic.query.spread.slotSharingGroup": "both",
    **AT_ONCE,
}
API = "/elastic/api/v1"


class Application:
    """A stateless and a stateful query over generated rows."""

    def __init__(self, spark: SparkSession, jvm: Driver) -> None:
        self.spark = spark
        self.jvm = jvm
        url = spark.sparkContext.uiWebUrl
        assert url is not None
        self.url = url
        self.api = Client(url, API)
        rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
        keyed = rows.withColumn("key", F.col("value") % 7)
        queries = {
            # A count per micro-batch, which needs a shuffle and no state.
            "spread": keyed.repartition("key").writeStream.format("noop").queryName("spread"),
            "counts": keyed.groupBy("key").count().writeStream.format("noop").queryName("counts")
            .outputMode("update"),
        }  # fmt: skip
        self.running: dict[str, StreamingQuery] = {
            name: query.trigger(processingTime="300 milliseconds").start() for name, query in queries.items()
        }

    def id(self, name: str) -> str:
        return str(self.running[name].id)

    def shown(self, name: str) -> Any:
        return self.api.get(f"/queries/{self.id(name)}").json

    def batches(self) -> dict[str, int]:
        """Return the number of the last micro-batch of each query, according to Spark."""
        progress = {name: query.lastProgress for name, query in self.running.items()}
        return {name: -1 if last is None else int(last["batchId"]) for name, last in progress.items()}

    def goes_on(self) -> None:
        """Wait until every query has committed two more micro-batches."""
        before = self.batches()
        eventually(
            lambda: all(now >= before[name] + 2 for name, now in self.batches().items()),
            "every query continues",
        )

    def policy(self) -> psutil.Process:
        return eventually(lambda: policies_of(self.jvm.pid), "there is a policy process")[0]


@pytest.fixture(scope="module")
def application(jvm: Driver) -> Iterator[Application]:
    with jvm.session(CONF) as spark:
        running = Application(spark, jvm)
        running.goes_on()
        yield running


def bounds(lower: int, upper: int) -> dict[str, Any]:
    none = {"parallelism": {"lowerBound": 1, "upperBound": 32_768}}
    return {"shuffle": {"parallelism": {"lowerBound": lower, "upperBound": upper}}, "source-0": none}


@pytest.mark.skipif(not MOVES_STATE, reason="the count of its stateful query cannot be changed")
def test_a_client_written_for_flink_reads_the_bounds_changes_them_and_puts_them_back(
    application: Application,
) -> None:
    path = f"/jobs/{application.id('counts').replace('-', '')}/resource-requirements"
    ids = application.shown("counts")["vertexIds"]
    got = application.api.get(path)
    assert got.json == {ids[vertex]: bound for vertex, bound in bounds(1, 32_768).items()}
    wanted = got.json
    wanted[ids["shuffle"]]["parallelism"]["upperBound"] = 1
    reply = application.api.put(path, wanted, If_Match=got.headers["etag"])
    assert (reply.status, reply.json) == (200, {})
    assert application.api.get(path).json == wanted
    eventually(lambda: application.shown("counts")["partitions"] == 1, "the stateful query runs with one")
    application.goes_on()

    def completed() -> Any:
        newest = application.api.get(f"/queries/{application.id('counts')}/rescales").json["rescales"][0]
        return newest if newest["status"] == "completed" else None

    newest = eventually(completed, "the rescale is completed")
    assert (newest["cause"], newest["partitionsAfter"]) == ("update_requirement", 1)
    assert newest["pausedMs"] > 0
    assert any("New bounds from someone at 127.0.0.1" in line for line in application.jvm.said())


def test_a_stateless_query_follows_new_bounds_in_place(application: Application) -> None:
    path = f"/queries/{application.id('spread')}/resource-requirements"
    for most in (1, 2):
        assert application.api.put(path, bounds(1, most)).status == 200
        eventually(partial(ran_with, application, most), f"a batch ran with {most}")


def ran_with(application: Application, partitions: int) -> bool:
    last = application.shown("spread")["lastBatch"]
    return last is not None and last["partitions"] == partitions


def test_all_errors_of_a_body_come_back(application: Application) -> None:
    path = f"/queries/{application.id('spread')}/resource-requirements"
    before = application.api.get(path).json
    reply = application.api.put(path, {**bounds(0, 5), "v1": {}})
    assert reply.status == 400
    reply = application.api.put(path, {**bounds(0, 5), "v1": bounds(1, 2)["shuffle"]})
    assert [problem["code"] for problem in reply.json["problems"]] == ["not_positive", "unknown_vertex"]
    assert application.api.get(path).json == before


def test_metrics_can_be_collected(application: Application) -> None:
    reply = Client(application.url).get("/elastic/metrics/")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain")
    assert "\nspark_elastic_slots 2\n" in reply.text


def test_paths_with_tricks_lead_nowhere(application: Application) -> None:
    for path in ("/%2e%2e/%2e%2e/jobs/", "/..%2f..%2fjobs", "//overview", "/a\\b", "/%00"):
        reply = application.api.get(path)
        # Earlier versions of Jetty resolve the dots to Spark's own pages, which anyone may read.
        page = SPARK_MINOR < (4, 2) and reply.headers["content-type"].startswith("text/html")
        assert page or reply.status in (400, 404), path
    application.goes_on()


def statuses(sockets: list[socket.socket]) -> Counter[int]:
    """Read the status of the answer on each connection, 0 where it was closed without one."""
    found: Counter[int] = Counter()
    for connection in sockets:
        with closing(connection), suppress(OSError):
            line = connection.makefile("rb").readline()
            found[int(line.split()[1]) if line else 0] += 1
    return found


def connect(application: Application, head: str) -> socket.socket:
    host, _, port = application.api.host.partition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(head.format(host=application.api.host).replace("\n", "\r\n").encode())
    return connection


@pytest.fixture
def unharmed(application: Application) -> Iterator[Application]:
    """Whatever a client does, the queries continue, and the same policy process still answers."""
    policy = application.policy().pid
    yield application
    application.goes_on()
    assert application.policy().pid == policy
    assert eventually(lambda: application.api.get("/overview").status == 200, "the API answers")


def test_a_huge_body_is_refused_before_it_was_sent(unharmed: Application) -> None:
    path = f"{API}/queries/{unharmed.id('counts')}/resource-requirements"
    head = f"PUT {path} HTTP/1.1\nHost: {{host}}\nContent-Type: application/json\n"
    declared = connect(unharmed, head + "Content-Length: 10000000000\n\n")
    endless = connect(unharmed, head + "Transfer-Encoding: chunked\n\n")
    with suppress(OSError):
        for _ in range(100):
            endless.sendall(b"2000\r\n" + b" " * 0x2000 + b"\r\n")
    assert statuses([declared]) == {413: 1}
    assert set(statuses([endless])) <= {413}


def test_bodies_that_come_slowly_hold_up_nobody_for_long(unharmed: Application) -> None:
    path = f"{API}/queries/{unharmed.id('counts')}/resource-requirements"
    head = f"PUT {path} HTTP/1.1\nHost: {{host}}\nContent-Type: application/json\nContent-Length: 1000\n\n"
    slow = [connect(unharmed, head) for _ in range(20)]
    begin = time.monotonic()
    # Only a few of them are read at all, and reads have places of their own.
    assert unharmed.api.get("/overview").status == 200
    drip = threading.Event()

    def keep_dripping() -> None:
        while not drip.wait(1):
            for connection in slow:
                with suppress(OSError):
                    connection.sendall(b" ")

    dripping = threading.Thread(target=keep_dripping)
    dripping.start()
    try:
        found = statuses(slow)
    finally:
        drip.set()
        dripping.join()
    # Sending all bodies completely would take a thousand seconds.
    assert time.monotonic() - begin < 90
    assert found[503] >= 1
    assert found[408] >= 1
    assert found[503] + found[408] == 20


def test_a_thousand_requests_at_once_are_answered_or_turned_away(unharmed: Application) -> None:
    # Spark's accept queue is short, so each connection sends several requests at once.
    one = f"GET {API}/queries HTTP/1.1\nHost: {{host}}\n\n"
    last = one.replace("\n\n", "\nConnection: close\n\n")
    with ThreadPoolExecutor(20) as pool:
        crowd = list(pool.map(lambda _: connect(unharmed, one * 9 + last), range(100)))

    def all_statuses(connection: socket.socket) -> list[int]:
        with closing(connection), connection.makefile("rb") as stream:
            return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", stream.read())]

    # Concurrently: a server that cannot write to a connection for a long time resets it.
    with ThreadPoolExecutor(len(crowd)) as pool:
        found = Counter(chain.from_iterable(pool.map(all_statuses, crowd)))
    assert found.total() == 1_000
    assert set(found) <= {200, 503}
    assert found[200] >= 64


def test_deep_json_is_refused(unharmed: Application) -> None:
    path = f"/queries/{unharmed.id('counts')}/resource-requirements"
    assert unharmed.api.put(path, b'{"a":' * 10_000).status == 400


def test_while_the_policy_is_away_the_api_says_so_and_comes_back(application: Application) -> None:
    seen = []

    def was_away() -> list[Any]:
        """Kill the policy, and return the answers that report that it is away."""
        restarts = application.api.get("/overview").json["policyRestarts"]
        application.policy().kill()

        def back() -> bool:
            begin = time.monotonic()
            reply = application.api.get("/overview")
            seen.append((reply.status, time.monotonic() - begin, reply.headers.get("retry-after")))
            return reply.status == 200 and reply.json["policyRestarts"] > restarts

        eventually(back, "the next policy process answers")
        return [look for look in seen if look[0] == 503]

    # On a busy machine the next process may be up before the first check.
    away = was_away() or was_away()
    assert away
    assert all(retry == "1" for _, _, retry in away)
    assert max(took for _, took, _ in seen) < TIMEOUT_S
    eventually(lambda: len(application.api.get("/queries").json["queries"]) == 2, "it knows the queries")
    application.goes_on()


def test_a_policy_that_hangs_is_not_waited_for_without_end(application: Application) -> None:
    policy = application.policy()
    policy.suspend()
    # On a busy machine its other threads still run for a moment.
    eventually(lambda: policy.status() == psutil.STATUS_STOPPED, "the policy process hangs")
    begin = time.monotonic()
    reply = application.api.get("/overview")
    assert reply.status == 503
    assert time.monotonic() - begin < TIMEOUT_S
    eventually(lambda: not policy.is_running(), "the policy process is replaced")
    eventually(lambda: application.api.get("/overview").status == 200, "the next policy process answers")
    application.goes_on()


def test_a_query_is_stopped_as_its_application_would(application: Application) -> None:
    query = application.running.pop("counts")
    assert application.api.post(f"/queries/{query.id}/stop").status == 202
    eventually(lambda: not query.isActive, "the query has ended")
    assert query.exception() is None
    application.goes_on()
