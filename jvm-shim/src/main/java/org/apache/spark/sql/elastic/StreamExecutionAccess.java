package org.apache.spark.sql.elastic;

import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.*;
import org.apache.spark.sql.execution.streaming.runtime.*;
import scala.collection.Seq;

/**
 * Accesses members of a stream execution. They are protected in Scala but public in the class file, so javac checks
 * the access at build time. Reflection would fail only in a user's job.
 */
interface StreamExecutionAccess {
  /** Make the stream thread end as if the query had been stopped. */
  static void terminate(StreamExecution execution) {
    execution.state().set(TERMINATED$.MODULE$);
  }

  static boolean isTerminated(StreamExecution execution) {
    return execution.state().get() == TERMINATED$.MODULE$;
  }

  /** Return the sources in plan order, repeated if read twice; null before the stream thread has created them. */
  static Seq<SparkDataStream> sources(StreamExecution execution) {
    return execution.sources();
  }
}
