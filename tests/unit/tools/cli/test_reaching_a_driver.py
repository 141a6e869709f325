"""Tests of how the commands reach a driver: logins, redirections, and a driver that does not answer."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.unit.tools.cli.served import Canned, Served, run, served

# YARN's filter in front of a driver's UI redirects clients that do not come through the proxy to this URL.
TO_YARNS_PROXY = "http://rm:8088/proxy/redirect/application_1_1/elastic/api/v1/overview"


def test_a_login_and_headers_go_with_every_request(driver: Served) -> None:
    arguments = ("status", "--user", "alice", "--header", "X-Team: blue")
    assert driver.run(*arguments, SPARK_ELASTIC_PASSWORD="secret").exit_code == 0
    for heard in driver.heard[-2:]:
        assert heard["Authorization"] == "Basic YWxpY2U6c2VjcmV0"
        assert heard["X-Team"] == "blue"
    assert driver.run("status", "--header", "nonsense").exit_code == 2
    assert driver.run("status", "--header", "X-Team: blue\nX-Other: red").exit_code == 2


def test_a_token_comes_from_a_file_or_the_environment_and_what_is_typed_counts_more(
    driver: Served, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("from.the-file_==\n")
    environment = {"SPARK_ELASTIC_TOKEN": "from.the.environment"}

    def sent(*arguments: str, **more: str) -> str:
        result = driver.run("status", *arguments, **environment, **more)
        assert result.exit_code == 0, result.output
        return driver.heard[-1]["Authorization"]

    assert sent() == "Bearer from.the.environment"
    assert sent("--token-file", str(file)) == "Bearer from.the-file_=="
    assert sent("--user", "alice", SPARK_ELASTIC_PASSWORD="secret") == "Basic YWxpY2U6c2VjcmV0"
    assert sent("--header", "authorization: Negotiate abc") == "Negotiate abc"
    driver.run("status", SPARK_ELASTIC_TOKEN="")
    assert "Authorization" not in driver.heard[-1]
    both = driver.run("status", "--user", "alice", "--token-file", str(file))
    assert (both.exit_code, "leave one of them out" in both.stderr) == (2, True)


@pytest.mark.parametrize("token", ["Bearer secret", "secret\nsecret", "", "sécret", b"secret\xff"])
def test_what_is_no_token_is_not_sent_and_not_shown(
    driver: Served, tmp_path: Path, token: str | bytes
) -> None:
    file = tmp_path / "token"
    file.write_bytes(token if isinstance(token, bytes) else token.encode())
    result = driver.run("status", "--token-file", str(file))
    assert result.exit_code == 2
    assert "has no bearer token" in result.stderr
    assert "cret" not in result.output
    assert driver.heard == []


@pytest.mark.parametrize("code", [401, 403])
def test_a_filter_that_wants_a_login_ends_with_4_and_says_what_to_type(driver: Served, code: int) -> None:
    driver.canned["/"] = Canned(code, '{"status": "403", "message": "Authorization header is missing."}')
    result = driver.run("status")
    assert result.exit_code == 4
    assert f"{driver.url} requires a login ({code} Authorization header is missing.)" in result.stderr
    for typed in ("--user NAME", "--token-file FILE", "SPARK_ELASTIC_TOKEN"):
        assert typed in result.stderr
    driver.canned["/"] = Canned(code)
    result = driver.run("status", SPARK_ELASTIC_TOKEN="secret")
    assert result.exit_code == 4
    assert "rejects this login" in result.stderr
    assert "secret" not in result.output
    found = run("status", "--app", "counts", "--master-ui", driver.url)
    assert (found.exit_code, "requires a login" in found.stderr) == (4, True)


def test_a_login_is_not_carried_to_where_a_master_redirects(driver: Served) -> None:
    with served() as other:
        driver.canned["/json/"] = Canned(302, "", {"Location": f"{other.url}/json/"})
        arguments = ("--app", "counts", "--master-ui", driver.url)
        result = run("status", *arguments, SPARK_ELASTIC_TOKEN="secret")
        assert result.exit_code == 3
        assert f"a redirect to {other.url}/json/: name the master's UI" in result.stderr
        assert other.heard == []


def test_nobody_there_ends_with_3_and_says_what_to_type() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for result in (run("status", "--url", url), run("status", SPARK_ELASTIC_URL=url)):
            assert result.exit_code == 3
            assert f"no driver at {url} (Connection refused)" in result.stderr
            assert "SPARK_ELASTIC_URL" in result.stderr
    with served() as driver:
        url = driver.url.replace("http:", "https:")
        result = run("status", "--url", url)
        assert result.exit_code == 3
        assert (
            f"no TLS at {url} (WRONG_VERSION_NUMBER): does the address start with http://?" in result.stderr
        )
    assert run("status", "--url", "ftp://somewhere").exit_code == 2
    assert run("status", "--url", "http://u:p@somewhere").exit_code == 2


@pytest.mark.parametrize(
    ("canned", "words"),
    [
        (Canned(404), "the application runs without the plugin"),
        (Canned(302, "", {"Location": "/jobs/"}), "the application runs without the plugin"),
        (Canned(200), "is not a driver with spark-elastic"),
        (Canned(200, "[]"), "is not a driver with spark-elastic"),
        (Canned(302, "", {"Location": "https://login"}), "redirects to https://login: name that address"),
        (Canned(302, "", {"Location": TO_YARNS_PROXY}), "type --url http://rm:8088/proxy/application_1_1\n"),
        (Canned(200, '{"slots": 1}'), "the driver has another version"),
        (Canned(404, '{"errors": ["nothing is at this path"]}'), "may have an older version"),
        (Canned(502), "is the application still running?"),
    ],
)
def test_no_such_driver_ends_with_3(driver: Served, canned: Canned, words: str) -> None:
    driver.canned["/"] = canned
    result = driver.run("status")
    assert result.exit_code == 3
    assert words in result.stderr


def test_a_policy_that_is_not_ready_ends_with_6() -> None:
    with served(begun=False) as driver:
        result = driver.run("status")
        assert (result.exit_code, result.stdout) == (6, "")
        assert "try again" in result.stderr


def test_a_driver_is_found_through_its_master(driver: Served) -> None:
    apps = [{"id": "app-1", "name": "counts"}, {"id": "app-2", "name": "other"}]
    page = f'<li><a href="{driver.url}">Application Detail UI</a></li>'
    driver.canned.update(
        {"/json/": Canned(200, json.dumps({"activeapps": apps})), "/app/": Canned(200, page)}
    )
    for named in ("app-1", "counts"):
        result = run("status", "--app", named, "--master-ui", driver.url)
        assert result.exit_code == 0, result.output
    result = run("status", "--app", "app-11", SPARK_ELASTIC_MASTER_UI=driver.url)
    assert result.exit_code == 3
    assert "did you mean 'app-1'? running are app-1 (counts), app-2 (other)" in result.stderr
    # Behind the master's proxy the link is relative.
    driver.canned["/app/"] = Canned(200, '<a href="/proxy/app-1">Application Detail UI</a>')
    driver.canned["/proxy/app-1/elastic/api/v1/overview"] = Canned(404)
    result = run("status", "--app", "app-1", "--master-ui", driver.url)
    assert f"{driver.url}/proxy/app-1 answers" in result.stderr
    driver.canned["/app/"] = Canned(200, "Disabled")
    result = run("status", "--app", "app-1", "--master-ui", driver.url)
    assert (result.exit_code, "has no UI" in result.stderr) == (3, True)
    driver.canned["/json/"] = Canned(200, "{}")
    result = run("status", "--app", "app-1", "--master-ui", driver.url)
    assert (result.exit_code, "is not a Standalone master" in result.stderr) == (3, True)
    assert driver.run("status", "--app", "app-1").exit_code == 2
