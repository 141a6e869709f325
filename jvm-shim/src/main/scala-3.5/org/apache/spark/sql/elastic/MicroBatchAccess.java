package org.apache.spark.sql.elastic;

import org.apache.spark.sql.execution.streaming.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.OffsetSeqMetadata;
import org.apache.spark.sql.execution.streaming.WatermarkTracker;

/** Members of a stream execution that only boundaries need: if one of these is missing, the rest works. */
interface MicroBatchAccess {
  /** Make the next micro-batch read the checkpoint first, as at the start of a run. */
  static void forgetBatch(MicroBatchExecution execution) {
    execution.currentBatchId_$eq(-1L);
  }

  static OffsetSeqMetadata metadata(MicroBatchExecution execution) {
    return execution.offsetSeqMetadata();
  }

  static void setMetadata(MicroBatchExecution execution, OffsetSeqMetadata metadata) {
    execution.offsetSeqMetadata_$eq(metadata);
  }

  /** Return the watermarks of the inputs; the checkpoint has only their outcome. */
  static WatermarkTracker watermarks(MicroBatchExecution execution) {
    return execution.watermarkTracker();
  }

  static void use(MicroBatchExecution execution, WatermarkTracker watermarks) {
    execution.watermarkTracker_$eq(watermarks);
  }

  /** Stop the sources, which may each have a client or a server. */
  static void stopSources(MicroBatchExecution execution) {
    execution.stopSources();
  }
}
