package org.apache.spark.sql.elastic;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecutionContext;
import org.apache.spark.sql.execution.streaming.runtime.ProgressReporter;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkTracker;
import scala.collection.immutable.Seq;

/** Such members of a stream execution as only boundaries need: where one of these is missing, the rest works. */
final class MicroBatchAccess {
  private MicroBatchAccess() {}

  /** Replaces the sources by others. */
  static void use(MicroBatchExecution execution, Seq<SparkDataStream> sources) {
    execution.sources_$eq(sources);
  }

  /** Stops the sources, of which each may have a client or a server of its own. */
  static void stopSources(MicroBatchExecution execution) {
    execution.stopSources();
  }

  /** What each input has come to, of which the checkpoint has only the outcome. */
  static WatermarkTracker watermarks(MicroBatchExecution execution) {
    return execution.watermarkTracker();
  }

  static void use(MicroBatchExecution execution, WatermarkTracker watermarks) {
    execution.watermarkTracker_$eq(watermarks);
  }

  static ProgressReporter progressReporter(MicroBatchExecution execution) {
    return execution.progressReporter();
  }

  /** Reads the checkpoint and makes what follows its last batch the batch of a context. */
  static void populateStartOffsets(
      MicroBatchExecution execution, MicroBatchExecutionContext context, SparkSession session) {
    execution.populateStartOffsets(context, session);
  }
}
