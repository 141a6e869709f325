package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger

import Moved._

/** Spark's own trigger executors, with each micro-batch run through a boundary. */
private[elastic] trait AtBoundaries extends TriggerExecutor {
  protected def execution: MicroBatchExecution
  protected def boundary: Boundary

  abstract override def execute(batch: () => Boolean): Unit = {
    boundary.next = new Batch
    boundary.inRun.read() // first, or its count would override the one ordered at the start
    boundary.start()
    super.execute(() => boundary.run(_ => run(batch)))
  }

  private def run(batch: () => Boolean): Boolean = {
    val before = StreamExecutionAccess.currentBatchId(execution)
    val goesOn = batch()
    if (StreamExecutionAccess.currentBatchId(execution) != before) boundary.next = new Batch
    goesOn
  }
}

private[elastic] object Triggers {

  /** Asynchronous progress tracking has its own trigger executor, outside this field. */
  def canPut(execution: MicroBatchExecution): Boolean = execution.getClass == classOf[MicroBatchExecution]

  private lazy val field = Hidden.field("org.apache.spark.sql.execution.streaming.MicroBatchExecution#triggerExecutor")

  /** Give a query a trigger executor like its own, on its stream thread and before its first batch. */
  def put(of: MicroBatchExecution, at: Boundary): Unit =
    field.set(
      of,
      (field.get(of), of.trigger) match {
        case (_: SingleBatchExecutor, _) =>
          new SingleBatchExecutor with AtBoundaries { val (execution, boundary) = (of, at) }
        case (_: MultiBatchExecutor, _) =>
          new MultiBatchExecutor with AtBoundaries { val (execution, boundary) = (of, at) }
        case (_: ProcessingTimeExecutor, trigger: ProcessingTimeTrigger) =>
          val clock = new WaitingAtBoundary(of.triggerClock, at)
          new ProcessingTimeExecutor(trigger, clock) with AtBoundaries with LoggedAsSpark {
            val (execution, boundary) = (of, at)
          }
        case (other, _) => throw new IllegalStateException(s"unknown trigger executor $other")
      })
}
