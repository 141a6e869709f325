package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.streaming.Trigger

/** The length of a query's batches in real-time mode, in ms; None for other queries. */
private[elastic] object RealTime {
  def apply(trigger: Trigger): Option[Long] = trigger match {
    case RealTimeTrigger(ms) => Some(ms)
    case _ => None
  }
}

/** The state stores of each partition of an operator. */
private[elastic] object StoreNames {
  def apply(operator: Moved.StateStoreWriter): Seq[String] = operator.stateStoreNames
}
