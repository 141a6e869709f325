package org.apache.spark.sql.elastic;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.runtime.TERMINATED$;
import scala.collection.immutable.Seq;

/**
 * The members of a stream execution that are needed here. They are protected in Scala, which is public in the
 * class file: javac finds out at build time what reflection would find out in somebody's job.
 */
final class StreamExecutionAccess {
  private StreamExecutionAccess() {}

  /** Lets the stream thread end as if the query had been stopped. */
  static void terminate(StreamExecution execution) {
    execution.state().set(TERMINATED$.MODULE$);
  }

  static boolean isTerminated(StreamExecution execution) {
    return execution.state().get() == TERMINATED$.MODULE$;
  }

  /** In the order of the plan, one that is read twice twice; null before the stream thread has made them. */
  static Seq<SparkDataStream> sources(StreamExecution execution) {
    return execution.sources();
  }

  /** The one that its batches run in. */
  static SparkSession session(StreamExecution execution) {
    return execution.sparkSessionForStream();
  }
}
