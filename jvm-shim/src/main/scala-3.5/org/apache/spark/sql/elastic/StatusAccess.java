package org.apache.spark.sql.elastic;

import org.apache.spark.sql.execution.streaming.StreamExecution;
import org.apache.spark.sql.streaming.StreamingQueryStatus;

/** Members of a stream execution that later versions keep in its micro-batches. */
interface StatusAccess {
  static long currentBatchId(StreamExecution execution) {
    return execution.currentBatchId();
  }

  static void show(StreamExecution execution, StreamingQueryStatus status) {
    execution.currentStatus_$eq(status);
  }
}
