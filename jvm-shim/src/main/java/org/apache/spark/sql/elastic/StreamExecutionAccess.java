package org.apache.spark.sql.elastic;

import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecutionContext;
import org.apache.spark.sql.execution.streaming.runtime.ProgressReporter;
import org.apache.spark.sql.execution.streaming.runtime.State;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * The members of a stream execution that are needed here. They are protected in Scala, which is public in the
 * class file: javac finds out at build time what reflection would find out in somebody's job.
 */
final class StreamExecutionAccess {
  private StreamExecutionAccess() {}

  static AtomicReference<State> state(StreamExecution execution) {
    return execution.state();
  }

  /** In the order of the plan, one that is read twice twice; null before the stream thread has made them. */
  static Seq<SparkDataStream> sources(StreamExecution execution) {
    return execution.sources();
  }

  /** The sources by the ids that offsets have them under. */
  static Map<String, SparkDataStream> sourceIdMap(MicroBatchExecution execution) {
    return execution.sourceIdMap();
  }

  static void use(MicroBatchExecution execution, Seq<SparkDataStream> sources, Map<String, SparkDataStream> ids) {
    execution.sources_$eq(sources);
    execution.sourceIdMap_$eq(ids);
  }

  /** Stops the sources, of which each may have a client or a server of its own. */
  static void stopSources(StreamExecution execution) {
    execution.stopSources();
  }

  static ProgressReporter progressReporter(StreamExecution execution) {
    return execution.progressReporter();
  }

  /** Reads the checkpoint and makes what follows its last batch the batch of a context. */
  static void populateStartOffsets(
      MicroBatchExecution execution, MicroBatchExecutionContext context, SparkSession session) {
    execution.populateStartOffsets(context, session);
  }
}
