package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden

import Moved.MicroBatchExecution

/**
 * New source objects within a run, as a new run would have them. A source that has failed while it looked for data may
 * have half of it in its books: Spark's file source takes files for read of which its log knows nothing.
 *
 * A run makes its sources with its logical plan, which is a lazy val: its flags are cleared, and it is made again. All
 * lazy vals that share them only look something up.
 */
private[elastic] object NewSources {
  private lazy val plan = Hidden.field(MovedFields.LogicalPlan)
  private lazy val flags = Hidden.field(MovedFields.LazyFlags)

  /** Called on the stream thread. What it throws leaves the sources that were there. */
  def make(execution: MicroBatchExecution): Unit = {
    val (before, made, trigger) = (plan.get(execution), flags.getByte(execution), execution.triggerExecutor)
    MicroBatchAccess.stopSources(execution)
    flags.setByte(execution, 0)
    try {
      StreamSession.of(execution).withActive(execution.logicalPlan)
      RunSources.tellLatest(execution)
    } catch {
      case e: Throwable =>
        plan.set(execution, before)
        flags.setByte(execution, made)
        throw e
    } finally execution.triggerExecutor = trigger // it is ours, and running
  }
}
