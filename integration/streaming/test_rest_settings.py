"""Tests of the settings, Spark's and ours, that open and shut the REST API."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.streaming.driver import Driver
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.proxying import Proxying
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONF = {**WITH_PLUGIN, "spark.ui.enabled": "true", "spark.elastic.scheduler-mode": "adaptive"}
API = "/elastic/api/v1"
BODY = {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 2}}}


@contextmanager
def api(jvm: Driver, **conf: str) -> Iterator[Client]:
    """Return a client once the policy answers; an underscore in a setting stands for a dot."""
    named = {name.replace("_", "."): value for name, value in conf.items()}
    with jvm.session({**CONF, **named}) as spark:
        client = Client(spark.sparkContext.uiWebUrl or "", API)
        eventually(lambda: client.get("/overview").status == 200, "the API answers")
        yield client


def write(client: Client, user: str | None = None) -> int:
    """Return the status of a change that would be valid but for its query."""
    as_user = "" if user is None else f"?doAs={user}"
    return client.put(f"/queries/nobody/resource-requirements{as_user}", BODY).status


def test_who_may_kill_nothing_may_change_nothing(jvm: Driver) -> None:
    with api(jvm, spark_ui_killEnabled="false") as client:
        assert write(client) == 403


def test_the_modify_acl_says_who_may_change_something(jvm: Driver) -> None:
    # There is no login here, so Spark lets a proxy name its user.
    acls = {"spark_acls_enable": "true", "spark_ui_view_acls": "alice,bob", "spark_modify_acls": "alice"}
    with api(jvm, **acls) as client:
        assert write(client, "alice") == 404
        assert write(client, "bob") == 403
        assert client.get("/overview?doAs=bob").status == 200
        # Spark's own refusal: a user who may not view its UI never reaches the API.
        assert client.get("/overview?doAs=mallory").status == 403


def test_it_is_changed_under_its_own_names_and_those_that_are_allowed(jvm: Driver) -> None:
    path = "/queries/nobody/resource-requirements"
    with api(jvm, spark_elastic_rest_allowedHosts="spark.example.org") as client:
        port = client.host.rpartition(":")[2]
        for name in ("localhost", socket.gethostname(), "127.0.0.1", "spark.example.org"):
            as_page = {
                "Host": f"{name}:{port}",
                "Origin": f"http://{name}:{port}",
                "Sec_Fetch_Site": "same-origin",
            }
            assert client.put(path, BODY, **as_page).status == 404
        led = client.put(path, BODY, Host=f"evil.example:{port}", Sec_Fetch_Site="same-origin")
        assert (led.status, "spark.elastic.rest.allowedHosts" in led.text) == (403, True)


def test_an_api_that_is_switched_off_is_not_there(jvm: Driver) -> None:
    with jvm.session({**CONF, "spark.elastic.rest.enabled": "false"}) as spark:
        client = Client(spark.sparkContext.uiWebUrl or "", API)
        # Spark redirects to its first page instead.
        assert client.get("/overview").status == 302
        assert write(client) == 405


def test_the_masters_proxy_passes_it_on(jvm: Driver, tmp_path: Path) -> None:
    with Proxying(tmp_path / "cluster") as cluster:
        conf = {**CONF, "spark.master": cluster.master_url, "spark.ui.reverseProxy": "true"}
        with jvm.session(conf) as spark:
            client = Client(cluster.master_ui, f"/proxy/{spark.sparkContext.applicationId}{API}")
            eventually(lambda: client.get("/overview").status == 200, "the API answers through the proxy")
            path = "/queries/nobody/resource-requirements"
            # A page of Spark's UI has the proxy's origin, while the request has the driver's own host name.
            assert client.put(path, BODY, Origin=f"http://{client.host}").status == 404
            assert client.put(path, BODY, Origin="http://evil.example").status == 403
            # To a browser such a page has the master's origin, and only the host name shows the attack.
            led = client.put(path, BODY, Host="evil.example", Origin="http://evil.example")
            assert (led.status, "spark.elastic.rest.allowedHosts" in led.text) == (403, True)
    assert cluster.left_over() == []
