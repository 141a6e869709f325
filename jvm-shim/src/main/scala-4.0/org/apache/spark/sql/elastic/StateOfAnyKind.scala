package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, TransformWithState, TransformWithStateInPandas}

/** Operators with arbitrary state. */
private[elastic] object StateOfAnyKind {
  def apply(node: LogicalPlan): Boolean = node match {
    case _: TransformWithState | _: TransformWithStateInPandas => true
    case _ => false
  }
}
