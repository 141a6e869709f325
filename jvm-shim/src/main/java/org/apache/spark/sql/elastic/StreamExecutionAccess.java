package org.apache.spark.sql.elastic;

import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.spark.sql.execution.streaming.runtime.State;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;

/**
 * The two members of a stream execution that a graceful stop needs. They are protected in Scala, which is public in the
 * class file: javac finds out at build time what reflection would find out in somebody's job.
 */
final class StreamExecutionAccess {
  private StreamExecutionAccess() {}

  static AtomicReference<State> state(StreamExecution execution) {
    return execution.state();
  }

  /** Taken by the stream thread at the end of each trigger, whether it ran a micro-batch or not. */
  static ReentrantLock awaitProgressLock(StreamExecution execution) {
    return execution.awaitProgressLock();
  }
}
