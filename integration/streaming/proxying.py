"""A Standalone master that is a proxy for the UIs of its applications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.processes import LoggedProcess


class Proxying(Cluster):
    """A cluster whose master is a proxy for the UIs of its applications."""

    def _start(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> LoggedProcess:
        options = f"{env.get('SPARK_DAEMON_JAVA_OPTS', '')} -Dspark.ui.reverseProxy=true"
        return super()._start(name, command, {**env, "SPARK_DAEMON_JAVA_OPTS": options})
