"""The jars of a Kafka broker and of Spark's Kafka source: neither comes with Spark or with this package."""

from __future__ import annotations

from pathlib import Path

from spark_elastic.demo.cluster import spark_home
from spark_elastic.installation import spark_in
from spark_elastic.maven.artifacts import FetchError, fetch

_BROKER = "org.apache.kafka:kafka_2.13:4.2.0"
# What comes beside the broker in Kafka's own distribution: its command line, and where its log goes.
_BESIDE_BROKER = ("org.apache.kafka:kafka-tools:4.2.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3")
# What the source needs beyond Spark's own jars, in the versions that it asks for.
_BESIDE_SOURCE = ("org.apache.kafka:kafka-clients:3.9.1", "org.apache.commons:commons-pool2:2.12.1")
_BESIDE_SOURCE_BEFORE_4 = ("org.apache.kafka:kafka-clients:3.4.1", "org.apache.commons:commons-pool2:2.11.1")


def broker_jars() -> list[Path]:
    """Return the jars of a broker and its tools, downloading what is not there yet; raises FetchError."""
    return [*fetch(_BROKER, transitive=True), *fetch(*_BESIDE_BROKER, transitive=False)]


def source_jars(token_provider: Path | None = None) -> list[Path]:
    """Return the jars that an application needs to read from Kafka, downloading what is not there yet.

    `token_provider` stands in for spark-token-provider-kafka where that can't be fetched. Raises FetchError.
    """
    found = spark_in(spark_home())
    if found is None:
        raise FetchError(f"{spark_home()} has no jars/spark-core_*.jar, so its Spark and Scala are not known")
    spark, scala = found.version, found.scala
    beside = _BESIDE_SOURCE_BEFORE_4 if spark.startswith("3.") else _BESIDE_SOURCE
    jars = fetch(f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}", *beside, transitive=False)
    token_provider_name = f"org.apache.spark:spark-token-provider-kafka-0-10_{scala}:{spark}"
    try:
        provider = fetch(token_provider_name, transitive=False)
    except FetchError:
        if token_provider is None:
            raise
        provider = [token_provider]
    return [*jars, *provider]
