package org.apache.spark.sql.elastic

import org.apache.spark.internal.Logging
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger
import org.apache.spark.util.{Clock, SystemClock}

private[elastic] object Triggers {

  /** Give a query a trigger executor like the one it would have, on its stream thread and before its first batch. */
  def put(execution: MicroBatchExecution, at: Boundary): Unit =
    RunTrigger.set(
      execution,
      (RunTrigger.of(execution), execution.trigger) match {
        case (_: SingleBatchExecutor, _) => new SingleBatchExecutor with AtBoundaries { val boundary = at }
        case (_: MultiBatchExecutor, _) => new MultiBatchExecutor with AtBoundaries { val boundary = at }
        case (_: ProcessingTimeExecutor, trigger: ProcessingTimeTrigger) =>
          val clock = new WaitingAtBoundary(execution.triggerClock, at)
          new ProcessingTimeExecutor(trigger, clock) with AtBoundaries with LoggedAsSpark { val boundary = at }
        case (other, _) => throw new IllegalStateException(s"unknown trigger executor $other")
      })
}

/** Spends the time between two triggers at a boundary. A clock of tests keeps its own way of waiting. */
private final class WaitingAtBoundary(clock: Clock, boundary: Boundary) extends Clock {
  override def getTimeMillis(): Long = clock.getTimeMillis()
  override def nanoTime(): Long = clock.nanoTime()

  override def waitTillTime(target: Long): Long = {
    if (clock.isInstanceOf[SystemClock]) {
      boundary.waitTill(target)
      clock.getTimeMillis()
    } else clock.waitTillTime(target)
  }
}

/** Logs under the name of the Spark class that it extends, as alerts and log settings expect. */
private[elastic] trait LoggedAsSpark extends Logging {
  override protected def logName: String = {
    val names = Iterator.iterate[Class[_]](getClass)(_.getSuperclass).map(_.getName)
    names.find(!_.startsWith("org.apache.spark.sql.elastic.")).get
  }
}
