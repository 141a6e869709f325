"""Tests of credentials in texts: what is removed, and what must stay."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.gateway.stages import Stages
from spark_elastic.redaction import RedactingFormatter, redacted
from spark_elastic.runtime.journal import Journal
from spark_elastic.settings import load
from tests.unit.http.world import ADAPTIVE, API, ID, world

SECRET = "pl4nted"


@pytest.mark.parametrize(
    "text",
    [
        f"s3a://AKIA:{SECRET}@bucket/x",
        f"s3a://AKIA:{SECRET}/with/slashes+{SECRET}@bucket/x",
        f"no route to ftp://user:p@{SECRET}@host:21/x",
        f"https://{SECRET}@example.org/repo",
        f"jdbc:mysql://u:{SECRET}@h/db failed",
        f"JDBC:POSTGRESQL://h/db?user=u&password={SECRET}",
        f"abfss://container:{SECRET}@account.dfs.core.windows.net/x",
        f'PlainLoginModule required username="u" password="{SECRET}";',
        f"fs.s3a.secret.key = {SECRET}, fs.s3a.access.key={SECRET}",
        f'{{"accessKey": "{SECRET}", "sessionToken":"{SECRET}"}}',
        f"Authorization failed (token={SECRET})",
    ],
)
def test_what_is_secret_is_taken_out(text: str) -> None:
    assert SECRET not in redacted(text)
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/x",
        "hdfs://nn:8020/a@b/c",
        "http://host:4040/x and somebody@example.org",
        "spark://a:7077,b:7077",
        "Syntax error at or near token: 'x'",
        "file:/s/savepoint-7",
    ],
)
def test_what_is_not_stays(text: str) -> None:
    assert redacted(text) == text


def test_nothing_that_is_planted_comes_out_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Secrets in settings, exceptions, the driver's answers and requests are never kept, shown or logged."""
    url = f"s3a://AKIA:{SECRET}@bucket/x"
    conf = {
        **ADAPTIVE,
        "spark.elastic.query.counts.savepoint": url,
        "spark.elastic.python": f"env API_TOKEN={SECRET} python3",
        "spark.eventLog.dir": f"ftp://u:{SECRET}@host/logs",
        "spark.elastic.adviseOnly": "false",
    }
    path = tmp_path / "j.jsonl"
    failure = ev.Failure(
        error=f"no route to {url}", causes=("java.io.IOException",), offsets=f'["{url}"]', error_class=None
    )
    with (
        caplog.at_level(logging.DEBUG, "spark_elastic"),
        world(conf, journal=lambda: Journal(path, settings=load({}), max_size=1 << 20)) as api,
    ):
        api.send(ev.QueryFailed, query=ID, run="r1", failure=failure)
        api.send(ev.ExecutorRemoved, executor="1", reason=f"could not write {url}")
        api.send(ev.ActionFailed, action="a1", query=ID, error=f"could not write {url}")
        api.send(ev.QueryTerminated, query=ID, run="r1", error=f"no route to {url}")
        Stages(api.publisher).answer({"id": "h1", "questions": [{"type": url}]})
        answers = [
            api.get(f"{API}{path}").text
            for path in ("/overview", "/queries", "/decisions", f"/queries/{ID}/exceptions", f"/queries/{ID}")
        ]
        answers.append(api.post(f"{API}/queries/{ID}/savepoints", {"target": url}).text)
        told = [str(action) for action in api.shim.actions]
    said = "\n".join(RedactingFormatter().format(record) for record in caplog.records)
    assert "unknown question type 's3a://***@bucket/x'" in said
    assert "no route to s3a://***@bucket/x" in path.read_text()
    for text in (path.read_text(), said, *answers, *told):
        assert SECRET not in text


@pytest.mark.parametrize(
    "name", ["rest.password", "secretKey", "api.token", "fs.access.key", "query.counts.password"]
)
def test_a_setting_that_does_not_exist_is_named_without_its_value(tmp_path: Path, name: str) -> None:
    with world({f"spark.elastic.{name}": SECRET}, queries=()) as api:
        off = api.shim.ordered(ac.TurnOff)
    assert f"spark.elastic.{name}" in off.message
    assert SECRET not in json.dumps(off.message)
