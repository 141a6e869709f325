package org.apache.spark.sql.elastic

import org.apache.spark.util.{Clock, SystemClock}

/** Spends the time between two triggers at a boundary. A clock of tests keeps its own way of waiting. */
private[elastic] final class WaitingAtBoundary(clock: Clock, boundary: Boundary) extends Clock {
  override def getTimeMillis(): Long = clock.getTimeMillis()
  override def nanoTime(): Long = clock.nanoTime()

  override def waitTillTime(target: Long): Long = {
    if (clock.isInstanceOf[SystemClock]) {
      boundary.waitTill(target)
      clock.getTimeMillis()
    } else clock.waitTillTime(target)
  }
}
