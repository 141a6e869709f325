package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger

import Moved._

/** Spark's own trigger executors, with each micro-batch run through a boundary. */
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

private[elastic] object Triggers {
  def canPut(execution: MicroBatchExecution): Boolean = true

  /** Give a query a trigger executor like the one it would have, on its stream thread and before its first batch. */
  def put(execution: MicroBatchExecution, at: Boundary): Unit = {
    StreamSession.of(execution).withActive(execution.logicalPlan) // creates Spark's executor, and the sources
    execution.triggerExecutor = (execution.triggerExecutor, execution.trigger) match {
      case (_: SingleBatchExecutor, _) => new SingleBatchExecutor with AtBoundaries { val boundary = at }
      case (_: MultiBatchExecutor, _) => new MultiBatchExecutor with AtBoundaries { val boundary = at }
      case (_: ProcessingTimeExecutor, trigger: ProcessingTimeTrigger) =>
        val clock = new WaitingAtBoundary(execution.triggerClock, at)
        new ProcessingTimeExecutor(trigger, clock) with AtBoundaries with LoggedAsSpark { val boundary = at }
      case (other, _) => throw new IllegalStateException(s"unknown trigger executor $other")
    }
  }
}
