package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.elastic.Moved.MicroBatchExecution

/**
 * Creates new source objects within a run, as a new run would. A source that failed while it looked for data may have
 * recorded half of it: Spark's file source takes files as read that its log does not have.
 *
 * A run creates its sources with its logical plan, which is a lazy val: its flags are cleared, and it is computed
 * again. All lazy vals that share the flags only look something up.
 */
private[elastic] object NewSources {
  private lazy val plan = Hidden.field(MovedFields.LogicalPlan)
  private lazy val flags = Hidden.field(MovedFields.LazyFlags)

  /** Called on the stream thread; `tell` notifies the new ones of what was read. If it throws, the previous ones stay. */
  def make(execution: MicroBatchExecution)(tell: => Unit): Unit = {
    val (before, made) = (plan.get(execution), flags.getByte(execution))
    MicroBatchAccess.stopSources(execution)
    flags.setByte(execution, 0)
    try {
      StreamSession.of(execution).withActive(execution.logicalPlan)
      tell
    } catch {
      case e: Throwable =>
        plan.set(execution, before)
        flags.setByte(execution, made)
        throw e
    }
  }
}
