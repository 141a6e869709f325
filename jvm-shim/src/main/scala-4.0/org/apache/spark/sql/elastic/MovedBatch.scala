package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.streaming

/** A micro-batch. */
private[elastic] trait MovedBatch {
  type Batch = streaming.MicroBatchExecutionContext
}
