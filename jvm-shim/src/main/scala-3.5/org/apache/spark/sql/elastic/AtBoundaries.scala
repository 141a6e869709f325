package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.elastic.Moved._

/** One of Spark's own trigger executors, with each micro-batch run through a boundary. */
private[elastic] trait AtBoundaries extends TriggerExecutor {
  protected def boundary: Boundary

  abstract override def execute(batch: () => Boolean): Unit = {
    boundary.next = new Batch
    boundary.inRun.read() // first, or its count would override the one ordered at the start
    boundary.start()
    super.execute(() => boundary.run(_ => run(batch)))
  }

  private def run(batch: () => Boolean): Boolean = {
    val before = StatusAccess.currentBatchId(boundary.execution)
    val goesOn = batch()
    if (StatusAccess.currentBatchId(boundary.execution) != before) boundary.next = new Batch
    goesOn
  }
}

/** The trigger executor of a run. */
private[elastic] object RunTrigger {
  private lazy val field = Hidden.field("org.apache.spark.sql.execution.streaming.MicroBatchExecution#triggerExecutor")

  /** Asynchronous progress tracking has its own trigger executor, outside this field. */
  def canPut(execution: MicroBatchExecution): Boolean = execution.getClass == classOf[MicroBatchExecution]

  def of(execution: MicroBatchExecution): TriggerExecutor = field.get(execution).asInstanceOf[TriggerExecutor]
  def set(execution: MicroBatchExecution, to: TriggerExecutor): Unit = field.set(execution, to)
}
