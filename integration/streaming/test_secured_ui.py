"""Tests of API, tab and command line behind a Spark UI with TLS and a filter: tokens, or passwords."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from attrs import frozen

from integration.streaming.command import spark_elastic
from integration.streaming.driver import Driver, driver
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.secured import (
    FILTER,
    PASSWORD,
    base64url,
    basic,
    compile_filter,
    make_keystore,
    token,
)
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONF = {
    **WITH_PLUGIN,
    "spark.ui.enabled": "true",
    "spark.ssl.ui.enabled": "true",
    "spark.ssl.ui.keyStorePassword": PASSWORD,
    "spark.ssl.ui.keyPassword": PASSWORD,
    "spark.acls.enable": "true",
    "spark.ui.view.acls": "alice,bob",
    "spark.modify.acls": "alice",
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
}
KEY = os.urandom(32)
TOKEN = token(KEY)
JWS = "org.apache.spark.ui.JWSFilter"
# The filters, each with its settings and the login of a user who may do everything.
FILTERS = {
    "tokens": ({"spark.ui.filters": JWS, f"spark.{JWS}.param.secretKey": base64url(KEY)}, f"Bearer {TOKEN}"),
    "logins": ({"spark.ui.filters": FILTER, f"spark.{FILTER}.param.password": PASSWORD}, basic("alice")),
}
API = "/elastic/api/v1"


@frozen
class Place:
    """A driver's JVM, the keystore of its UI with the certificate, and another server's certificate."""

    jvm: Driver
    keystore: Path
    certificate: Path
    other: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("secured")
    compile_filter(folder / "classes")
    _, other = make_keystore(folder, "other")
    with driver(folder / "driver", [folder / "classes"]) as jvm:
        yield Place(jvm, *make_keystore(folder, "ui"), other)


@frozen
class Application:
    """A query behind a filter; `login` is the login of `client`."""

    place: Place
    url: str
    login: str

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Call the command; it trusts the UI's certificate, unless the environment says otherwise."""
        trusted = {"SSL_CERT_FILE": str(self.place.certificate)}
        return spark_elastic(self.url, *arguments, **{**trusted, **environment})

    def client(self, root: str = API) -> Client:
        tls = ssl.create_default_context(cafile=self.place.certificate)
        return Client(self.url, root, {"Authorization": self.login}, tls)

    def shown(self) -> Any:
        (query,) = self.client().get("/queries").json["queries"]
        return query

    def bounds(self) -> tuple[int, int]:
        found = self.shown()["requirements"]["shuffle"]["parallelism"]
        return found["lowerBound"], found["upperBound"]

    def ran_with(self, partitions: int) -> bool:
        last = self.shown()["lastBatch"]
        return last is not None and last["partitions"] == partitions


@pytest.fixture(scope="module")
def behind(place: Place, request: pytest.FixtureRequest) -> Iterator[Application]:
    conf, login = FILTERS[request.param]
    with place.jvm.session({**CONF, "spark.ssl.ui.keyStore": str(place.keystore), **conf}) as spark:
        rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
        spread = rows.selectExpr("value % 7 AS key").repartition("key").writeStream.format("noop")
        started = spread.queryName("spread").trigger(processingTime="300 milliseconds").start()
        found = Application(place, str(spark.sparkContext.uiWebUrl), login)
        known = partial(found.client().get, f"/queries/{started.id}")
        eventually(lambda: known().status == 200, "the query is known")
        eventually(partial(found.ran_with, 2), "it runs with two")
        yield found


behind_tokens = pytest.mark.parametrize("behind", ["tokens"], indirect=True, scope="module")
behind_logins = pytest.mark.parametrize("behind", ["logins"], indirect=True, scope="module")


@behind_tokens
@pytest.mark.parametrize("typed", [("status",), ("rescale", "spread", "--down"), ("stop", "spread")])
def test_without_a_token_nothing_is_shown_and_nothing_done(
    behind: Application, typed: tuple[str, ...]
) -> None:
    result = behind.run(*typed)
    assert (result.returncode, result.stdout) == (4, "")
    assert result.stderr == (
        f"spark-elastic {typed[0]}: {behind.url} requires a login (403 Authorization header is missing.): "
        "type --user NAME, or give a bearer token with --token-file FILE or in SPARK_ELASTIC_TOKEN\n"
    )
    wrong = behind.run(*typed, SPARK_ELASTIC_TOKEN=token(b"x" * 32))
    assert (wrong.returncode, wrong.stdout) == (4, "")
    assert "rejects this login (403 JWT Validate Fail)" in wrong.stderr
    assert behind.bounds() == (1, 32_768)


@behind_tokens
def test_with_a_token_reads_and_changes_work(behind: Application, tmp_path: Path) -> None:
    status = behind.run("status", SPARK_ELASTIC_TOKEN=TOKEN)
    assert status.returncode == 0, status.stderr
    assert "spread" in status.stdout
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    down = behind.run("rescale", "spread", "--down", "--token-file", str(file))
    assert (down.returncode, down.stderr) == (0, "")
    assert down.stdout.startswith("spread: bounds 1–1, before 1–32768\n")
    eventually(partial(behind.ran_with, 1), "it runs with one")
    said = "\n".join(behind.place.jvm.said())
    assert TOKEN.rpartition(".")[2] not in said
    # JWSFilter does not name the user, and Spark allows everything to an unknown user.
    assert "New bounds from someone at 127.0.0.1" in said


@behind_tokens
def test_acls_hold_for_the_user_that_somebody_with_a_token_asks_for(behind: Application) -> None:
    client = behind.client()
    path = "/queries/nobody/resource-requirements"
    assert client.get("/overview?doAs=bob").status == 200
    assert client.get("/overview?doAs=mallory").status == 403
    assert client.put(f"{path}?doAs=alice", {}).status == 404
    refused = client.put(f"{path}?doAs=bob", {})
    assert (refused.status, "bob may not change this application" in refused.text) == (403, True)


@behind_tokens
def test_the_tab_and_its_changes_work_over_tls(behind: Application) -> None:
    page = behind.client("/elastic")
    assert 'id="elastic"' in page.get("/").text
    assert page.get("/static/main.js").status == 200
    client = behind.client()
    path = f"/queries/{behind.shown()['id']}/resource-requirements"
    wanted = client.get(path).json
    assert client.put(path, wanted, Origin=f"https://{client.host}").status == 200
    assert client.put(path, wanted, Origin="https://evil.example").status == 403


@behind_tokens
def test_a_certificate_that_is_not_trusted_ends_with_3_and_says_what_to_type(
    behind: Application, tmp_path: Path
) -> None:
    def said(url: str, **environment: str) -> str:
        result = behind.run("status", "--url", url, SPARK_ELASTIC_TOKEN=TOKEN, **environment)
        assert (result.returncode, result.stdout) == (3, "")
        (line,) = result.stderr.splitlines()
        assert f"the certificate of {url} is not trusted (" in line
        return line

    other, gone = str(behind.place.other), str(tmp_path / "gone.pem")
    assert f"SSL_CERT_FILE is {other}, which has no" in said(behind.url, SSL_CERT_FILE=other)
    assert f"SSL_CERT_FILE is {gone}, which does not exist" in said(behind.url, SSL_CERT_FILE=gone)
    elsewhere = f"https://localhost:{urlsplit(behind.url).port}"
    assert "name a host that it is for in the address" in said(elsewhere)
    unset = spark_elastic(behind.url, "status")
    assert (unset.returncode, "set SSL_CERT_FILE to a file with" in unset.stderr) == (3, True)


@behind_tokens
def test_an_address_without_tls_leads_to_the_one_with_it(behind: Application) -> None:
    def said(port: int | None) -> str:
        result = behind.run("status", "--url", f"http://127.0.0.1:{port}", SPARK_ELASTIC_TOKEN=TOKEN)
        assert result.returncode == 3
        return result.stderr

    started = re.compile(r"Successfully started service 'SparkUI' on port (\d+)")
    (plain,) = started.findall("\n".join(behind.place.jvm.said()))
    assert f"redirects to {behind.url}/elastic/" in said(plain)
    assert "not HTTP: does the address start with https://?" in said(urlsplit(behind.url).port)


@behind_logins
def test_acls_hold_for_the_user_who_logs_in(behind: Application) -> None:
    def run(user: str, *typed: str, password: str = PASSWORD) -> tuple[int, str]:
        result = behind.run(*typed, "--user", user, SPARK_ELASTIC_PASSWORD=password)
        return result.returncode, result.stdout + result.stderr

    anybody = behind.run("status")
    assert anybody.returncode == 4
    assert "requires a login (401 who are you?): type --user NAME" in anybody.stderr
    code, said = run("alice", "status", password="wrong")
    assert (code, "rejects this login (401 who are you?)" in said) == (4, True)
    code, said = run("mallory", "status")
    assert (code, "User mallory is not authorized to access this page." in said) == (4, True)
    assert run("bob", "status")[0] == 0
    down = ("rescale", "spread", "--down")
    code, said = run("bob", *down)
    assert (code, "bob may not change this application" in said) == (4, True)
    assert behind.bounds() == (1, 32_768)
    assert run("alice", *down)[0] == 0
    eventually(partial(behind.ran_with, 1), "it runs with one")
    log = "\n".join(behind.place.jvm.said())
    assert "New bounds from alice" in log
    assert PASSWORD not in log
