"""Which settings, Spark's and ours, open and shut the REST API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.streaming.driver import Driver, driver, policies_of
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONF = {**WITH_PLUGIN, "spark.ui.enabled": "true", "spark.elastic.scheduler-mode": "adaptive"}
API = "/elastic/api/v1"
BODY = {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 2}}}


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with driver(tmp_path_factory.mktemp("settings") / "driver") as started:
        yield started


@pytest.mark.parametrize(
    ("conf", "status"),
    [
        ({"spark.ui.killEnabled": "false"}, 403),
        ({"spark.acls.enable": "true", "spark.ui.view.acls": "*"}, 403),
        # Nothing of ours is there, so Spark shows its first page.
        ({"spark.elastic.rest.enabled": "false"}, 302),
    ],
)
def test_settings_of_spark_and_of_ours_shut_the_door(jvm: Driver, conf: dict[str, str], status: int) -> None:
    with jvm.session({**CONF, **conf}) as spark:
        api = Client(spark.sparkContext.uiWebUrl or "", API)
        eventually(lambda: api.get("/overview").status in (200, 302), "it answers, or is not there")
        assert api.put("/queries/nobody/resource-requirements", BODY).status == status


def test_without_a_ui_there_is_one_line_in_the_log(jvm: Driver) -> None:
    since = len(jvm.said())
    with jvm.session({**CONF, "spark.ui.enabled": "false"}) as spark:
        assert spark.range(3).count() == 3
        eventually(lambda: policies_of(jvm.pid), "there is a policy process")
        said = [line for line in jvm.said()[since:] if "no REST API" in line]
    assert len(said) == 1
