package org.apache.spark.sql.elastic;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.*;
import org.apache.spark.sql.execution.streaming.runtime.*;
import scala.collection.immutable.Seq;

/** Members of a stream execution that only boundaries need: if one of these is missing, the rest works. */
interface MicroBatchAccess {
  /** Replace the sources. */
  static void use(MicroBatchExecution execution, Seq<SparkDataStream> sources) {
    execution.sources_$eq(sources);
  }

  /** Stop the sources, which may each have a client or a server. */
  static void stopSources(MicroBatchExecution execution) {
    execution.stopSources();
  }

  /** Return the watermarks of the inputs; the checkpoint has only their outcome. */
  static WatermarkTracker watermarks(MicroBatchExecution execution) {
    return execution.watermarkTracker();
  }

  static void use(MicroBatchExecution execution, WatermarkTracker watermarks) {
    execution.watermarkTracker_$eq(watermarks);
  }

  static ProgressReporter progressReporter(MicroBatchExecution execution) {
    return execution.progressReporter();
  }

  /** Read the checkpoint, and make the batch after its last one that of a context. */
  static void populateStartOffsets(
      MicroBatchExecution execution, MicroBatchExecutionContext context, SparkSession session) {
    execution.populateStartOffsets(context, session);
  }
}
