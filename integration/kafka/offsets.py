"""How far a query has read a topic, as its progress says."""

from __future__ import annotations

import json

from pyspark.sql.streaming.query import StreamingQuery


def read_up_to(query: StreamingQuery, topic: str) -> dict[str, int]:
    """Return the offset up to which the query has read each partition, none before its first batch."""
    progress = query.lastProgress
    if progress is None:
        return {}
    offsets: dict[str, int] = json.loads(progress.sources[0].endOffset)[topic]
    return offsets
