package org.apache.spark.sql.elastic;

import org.apache.spark.sql.execution.streaming.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.OffsetSeqMetadata;
import org.apache.spark.sql.execution.streaming.WatermarkTracker;

/** Such members of a stream execution as only boundaries need: where one of these is missing, the rest works. */
final class MicroBatchAccess {
  private MicroBatchAccess() {}

  /** Lets the next micro-batch read the checkpoint first, as at the start of a run. */
  static void forgetBatch(MicroBatchExecution execution) {
    execution.currentBatchId_$eq(-1L);
  }

  static OffsetSeqMetadata metadata(MicroBatchExecution execution) {
    return execution.offsetSeqMetadata();
  }

  static void setMetadata(MicroBatchExecution execution, OffsetSeqMetadata metadata) {
    execution.offsetSeqMetadata_$eq(metadata);
  }

  /** What each input has come to, of which the checkpoint has only the outcome. */
  static WatermarkTracker watermarks(MicroBatchExecution execution) {
    return execution.watermarkTracker();
  }

  static void use(MicroBatchExecution execution, WatermarkTracker watermarks) {
    execution.watermarkTracker_$eq(watermarks);
  }

  /** Stops the sources, of which each may have a client or a server of its own. */
  static void stopSources(MicroBatchExecution execution) {
    execution.stopSources();
  }
}
