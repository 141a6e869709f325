"""The jars of a Kafka broker and of Spark's Kafka source: neither comes with Spark or with this package."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from spark_elastic.maven.artifacts import FetchError, fetch

_BROKER = "org.apache.kafka:kafka_2.13:4.2.0"
# What comes beside the broker in Kafka's own distribution: its command line, and where its log goes.
_BESIDE_BROKER = ("org.apache.kafka:kafka-tools:4.2.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3")
# What the source needs beyond Spark's own jars, in the versions that the source of Spark 4.2 asks for.
_BESIDE_SOURCE = ("org.apache.kafka:kafka-clients:3.9.1", "org.apache.commons:commons-pool2:2.12.1")


def broker_jars() -> list[Path]:
    """Return the jars of a broker and its tools, downloading what is not there yet; raises FetchError."""
    return [*fetch(_BROKER, transitive=True), *fetch(*_BESIDE_BROKER, transitive=False)]


def source_jars(token_provider: Path | None = None) -> list[Path]:
    """Return the jars that an application needs to read from Kafka, downloading what is not there yet.

    `token_provider` stands in for spark-token-provider-kafka where that can't be fetched. Raises FetchError.
    """
    spark = metadata.version("pyspark")
    source = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}"
    jars = fetch(source, *_BESIDE_SOURCE, transitive=False)
    try:
        provider = fetch(f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{spark}", transitive=False)
    except FetchError:
        if token_provider is None:
            raise
        provider = [token_provider]
    return [*jars, *provider]
