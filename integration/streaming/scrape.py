"""The driver's metrics, read like a monitoring system does."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from integration.streaming.http import Client

PREFIX = "spark_elastic_"


def metric(url: str, name: str, **labels: str) -> float | None:
    """Read one sample of the driver with this UI, None if there is none, or no policy knows it yet."""
    reply = Client(url).get("/elastic/metrics/")
    if reply.status == 503:
        return None
    assert reply.status == 200, reply.text
    found = [
        float(sample.value)
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
        if sample.name == PREFIX + name and labels.items() <= sample.labels.items()
    ]
    assert len(found) < 2, found
    return found[0] if found else None
