package org.apache.spark.sql.elastic

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger
import org.apache.spark.sql.execution.streaming.runtime.{ACTIVE, StreamExecution, TERMINATED}
import org.apache.spark.util.SystemClock

/**
 * Ends a run between two micro-batches: what was started is committed, nothing has to be done again, and the stream
 * thread is not interrupted in the middle of anything.
 *
 * The stream thread takes its progress lock at the end of each trigger. Who holds that lock and finds the thread queued
 * for it with no trigger active, has it at the boundary: it will look at its state next, and go. Only a thread that
 * sleeps until its next trigger, and will for a while, is interrupted; there is nothing that this could disturb.
 */
private[elastic] object GracefulStop {

  /** A sleep that ends sooner than this is waited for: between a look and an interrupt it may be over. */
  private val SurelyAsleepMs = 50L

  /**
   * Returns true when the run has ended at a boundary, false if it has not after `graceMs`.
   *
   * @param stopAsked whether the application has asked for the end of the query meanwhile
   */
  def apply(execution: StreamExecution, graceMs: Long, stopAsked: () => Boolean): Boolean = {
    val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(graceMs)
    val thread = execution.queryExecutionThread
    var marked = false
    while (!marked && thread.isAlive && System.nanoTime() < deadline) marked = tryMark(execution, deadline, stopAsked)
    if (marked) thread.join(math.max(1L, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime())))
    !thread.isAlive
  }

  /** Gets hold of the progress lock and marks the run as ended if it stands at a boundary before it moves on. */
  private def tryMark(execution: StreamExecution, deadline: Long, stopAsked: () => Boolean): Boolean = {
    val lock = StreamExecutionAccess.awaitProgressLock(execution)
    val thread = execution.queryExecutionThread
    lock.tryLock(10, TimeUnit.MILLISECONDS) && {
      try {
        while (!lock.hasQueuedThread(thread) && !asleep(execution) && thread.isAlive && System.nanoTime() < deadline) {
          Thread.sleep(1)
        }
        // Queued with a trigger active it stands at one of the lock's other uses, in mid-batch: let it through.
        val queued = lock.hasQueuedThread(thread) && !execution.status.isTriggerActive
        if (queued) StreamExecutionAccess.state(execution).set(TERMINATED)
        queued || (asleep(execution) && endSleeping(execution, stopAsked))
      } finally lock.unlock()
    }
  }

  private def endSleeping(execution: StreamExecution, stopAsked: () => Boolean): Boolean = {
    val state = StreamExecutionAccess.state(execution)
    state.set(TERMINATED)
    val still = asleep(execution)
    // One that has woken in between may have begun a batch, in which Spark would interrupt itself now: let it run.
    if (still) execution.queryExecutionThread.interrupt()
    else if (!stopAsked()) {
      state.compareAndSet(TERMINATED, ACTIVE)
      // The application says that it wants to stop before it sets the state: its word must not be taken back.
      if (stopAsked()) state.set(TERMINATED)
    }
    still
  }

  private def asleep(execution: StreamExecution): Boolean = {
    val thread = execution.queryExecutionThread
    val nextIsFar = (execution.trigger, execution.triggerClock) match {
      case (t: ProcessingTimeTrigger, _: SystemClock) if t.intervalMs > 0 =>
        t.intervalMs - System.currentTimeMillis() % t.intervalMs > SurelyAsleepMs
      case (_, _: SystemClock) => false
      case _ => true // a clock of tests: it moves when they say so
    }
    nextIsFar && !execution.status.isTriggerActive &&
    thread.getState.toString.endsWith("WAITING") &&
    thread.getStackTrace.exists(_.getMethodName == "waitTillTime")
  }
}
