"""The class paths of Flink's own REST client, and of a whole cluster."""

from __future__ import annotations

import os

from spark_elastic_tools.maven import fetch

FLINK = "1.20.0"
_SHADED = "17.0"
CLUSTER = "2.3.0"
"""The version of the cluster; the REST client has its own."""


def class_path() -> str:
    """Return the client's class path, fetching missing jars. Raises FetchError, NoJavaError."""
    modules = ("runtime", "core", "core-api", "annotations", "rpc-core")
    shaded = {"jackson": "2.14.2", "guava": "31.1-jre", "netty": "4.1.91.Final"}
    jars = fetch(
        *(f"org.apache.flink:flink-{module}:{FLINK}" for module in modules),
        *(f"org.apache.flink:flink-shaded-{name}:{version}-{_SHADED}" for name, version in shaded.items()),
        "org.apache.commons:commons-lang3:3.12.0",
        "org.slf4j:slf4j-api:1.7.36",
        transitive=False,
    )
    return os.pathsep.join(map(str, jars))


def cluster_class_path(sql: bool = False) -> str:
    """Return the class path of a cluster's processes and jobs. Raises FetchError, NoJavaError.

    Jobs with `sql` have tables and files too.
    """
    # What flink-dist is made of, as far as such a cluster needs it; its RPC is inside the loader's jar.
    modules = ("runtime", "clients", "streaming-java", "statebackend-rocksdb", "rpc-akka-loader", "container")
    tables = ("table-api-java-bridge", "table-runtime", "table-planner-loader", "connector-files")
    jars = fetch(
        *(f"org.apache.flink:flink-{module}:{CLUSTER}" for module in (*modules, *(tables if sql else ()))),
        "org.slf4j:slf4j-simple:1.7.36",
        transitive=True,
    )
    return os.pathsep.join(map(str, jars))
