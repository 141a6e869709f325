package org.apache.spark.sql.elastic

import java.util.UUID

import org.apache.spark.sql.streaming.StreamingQueryListener.{QueryIdleEvent, QueryProgressEvent}
import org.apache.spark.sql.streaming.StreamingQueryProgress

/** Spark's reports with another run id: all runs of a query are to look like the first one. */
private[elastic] object OneRun {

  def progress(first: UUID, p: StreamingQueryProgress): StreamingQueryProgress =
    if (p.runId == first) p
    else
      new StreamingQueryProgress(
        p.id,
        first,
        p.name,
        p.timestamp,
        p.batchId,
        p.batchDuration,
        p.durationMs,
        p.eventTime,
        p.stateOperators,
        p.sources,
        p.sink,
        p.observedMetrics)

  def progress(first: UUID, e: QueryProgressEvent): QueryProgressEvent =
    if (e.progress.runId == first) e else new QueryProgressEvent(progress(first, e.progress))

  def idle(first: UUID, e: QueryIdleEvent): QueryIdleEvent =
    if (e.runId == first) e else new QueryIdleEvent(e.id, first, e.timestamp)
}
