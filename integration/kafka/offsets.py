"""The position of a query in a topic, according to its progress."""

from __future__ import annotations

import json

from pyspark.sql.streaming.query import StreamingQuery


def read_up_to(query: StreamingQuery, topic: str) -> dict[str, int]:
    """Return the offset up to which the query has read each partition, none before its first micro-batch."""
    progress = query.lastProgress
    if progress is None:
        return {}
    offsets: dict[str, int] = json.loads(progress.sources[0].endOffset)[topic]
    return offsets
