package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, TransformWithState, TransformWithStateInPySpark}
import org.apache.spark.sql.execution.streaming.RealTimeTrigger
import org.apache.spark.sql.streaming.Trigger

/** The length of a query's batches in real-time mode, in ms; None for other queries. */
private[elastic] object RealTime {
  def apply(trigger: Trigger): Option[Long] = trigger match {
    case RealTimeTrigger(ms) => Some(ms)
    case _ => None
  }
}

/** Operators with arbitrary state. */
private[elastic] object StateOfAnyKind {
  def apply(node: LogicalPlan): Boolean = node match {
    case _: TransformWithState | _: TransformWithStateInPySpark => true
    case _ => false
  }
}

/** The state stores of each partition of an operator. */
private[elastic] object StoreNames {
  def apply(operator: Moved.StateStoreWriter): Seq[String] = operator.stateStoreNames
}
