package org.apache.spark.sql.elastic

import org.apache.spark.sql.elastic.Moved._

/** One of Spark's own trigger executors, with each micro-batch run through a boundary. */
private[elastic] trait AtBoundaries extends TriggerExecutor {
  protected def boundary: Boundary

  abstract override def setNextBatch(context: Batch): Unit = {
    boundary.next = context
    super.setNextBatch(context)
  }

  // A boundary may replace the context that Spark's executor holds.
  abstract override def execute(batch: Batch => Boolean): Unit = {
    boundary.start()
    super.execute(_ => boundary.run(batch))
  }
}

/** The trigger executor of a run. */
private[elastic] object RunTrigger {
  def canPut(execution: MicroBatchExecution): Boolean = true

  def of(execution: MicroBatchExecution): TriggerExecutor = {
    StreamSession.of(execution).withActive(execution.logicalPlan) // creates Spark's executor, and the sources
    execution.triggerExecutor
  }

  def set(execution: MicroBatchExecution, to: TriggerExecutor): Unit = execution.triggerExecutor = to
}
