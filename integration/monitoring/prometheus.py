"""A real Prometheus, built from its released sources, that scrapes one driver; and promtool."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import yaml

from integration.go_modules import Module, programs_of
from integration.streaming.http import Client
from spark_elastic_lab.demo.processes import LoggedProcess

if TYPE_CHECKING:
    from typing_extensions import Self

MONITORING = Path(__file__).parents[2] / "conf" / "monitoring"
RULES = MONITORING / "alerts.yml"
DASHBOARD = MONITORING / "dashboard.json"
_MODULE = "github.com/prometheus/prometheus"
PROMETHEUS = Module(
    _MODULE,
    "v0.316.0",
    {name: f"{_MODULE}/cmd/{name}" for name in ("prometheus", "promtool")},
    {"github.com/prometheus/common/version.Version": "3.16.0"},
    # What finds targets in clouds is most of it.
    tags=("remove_all_sd", "enable_kubernetes_sd"),
)
_START_S = 60.0
_CHECK_S = 60.0
SCRAPE_INTERVAL_S = 1


def promtool(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run promtool. Raises Unavailable if it cannot be built."""
    program = programs_of(PROMETHEUS)["promtool"]
    return subprocess.run(
        [str(program), *arguments], input=stdin, capture_output=True, text=True, timeout=_CHECK_S
    )


class Prometheus:
    """Scrapes the driver with this UI every second, and evaluates the alert rules; a context manager.

    All that it writes is in `folder`.
    """

    def __init__(self, folder: Path, driver: str) -> None:
        self._folder = folder
        scraped = {
            "job_name": "spark-elastic",
            "metrics_path": "/elastic/metrics/",
            "static_configs": [{"targets": [urlsplit(driver).netloc]}],
        }
        interval = f"{SCRAPE_INTERVAL_S}s"
        self._config = {
            "global": {"scrape_interval": interval, "evaluation_interval": interval},
            "rule_files": [str(RULES)],
            "scrape_configs": [scraped],
        }

    def __enter__(self) -> Self:
        """Start it. Raises Unavailable, ProcessFailure."""
        config = self._folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(self._config))
        command = [
            str(programs_of(PROMETHEUS)["prometheus"]),
            f"--config.file={config}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        ]
        log = self._folder / "prometheus.log"
        self._process = LoggedProcess("Prometheus", command, env=os.environ, log=log, cwd=self._folder)
        try:
            address = self._process.wait_for_line(r'"Listening on" .*address=(\S+)', _START_S)[1]
            self._process.wait_for_line("Server is ready to receive web requests", _START_S)
        except BaseException:
            self._process.stop()
            raise
        self.client = PrometheusClient(f"http://{address}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stop()


class PrometheusClient:
    """Asks the Prometheus at `url`."""

    def __init__(self, url: str) -> None:
        self._client = Client(url, "/api/v1")

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the samples of an expression now, each with `metric` and `value`; refuse warnings."""
        answer = self._ask(f"/query?{urlencode({'query': expression})}")
        assert not answer.get("warnings"), answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def value(self, expression: str) -> float | None:
        """Return the value of an expression with one sample at most."""
        found = self.query(expression)
        assert len(found) < 2, found
        return float(found[0]["value"][1]) if found else None

    def rules(self) -> list[dict[str, Any]]:
        """Return all rules, with their state and how their last evaluation went."""
        return [rule for group in self._ask("/rules")["data"]["groups"] for rule in group["rules"]]

    def targets(self) -> list[dict[str, Any]]:
        """Return what it scrapes, with how the last scrape went."""
        found: list[dict[str, Any]] = self._ask("/targets")["data"]["activeTargets"]
        return found

    def _ask(self, path: str) -> dict[str, Any]:
        reply = self._client.get(path)
        assert reply.status == 200, f"{path}: {reply.text}"
        answer: dict[str, Any] = reply.json
        return answer
