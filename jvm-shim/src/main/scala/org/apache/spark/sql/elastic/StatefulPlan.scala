package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.plans.logical._

/** Whether a streaming plan keeps state, and with it a partition count that its checkpoint fixes. */
private[elastic] object StatefulPlan {
  def apply(analyzed: LogicalPlan): Boolean = analyzed.exists(node => node.isStreaming && keepsState(node))

  private def keepsState(node: LogicalPlan): Boolean = node match {
    case _: Aggregate | _: Distinct | _: GlobalLimit => true
    case _: Deduplicate | _: DeduplicateWithinWatermark => true
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState => true
    case _: TransformWithState | _: TransformWithStateInPySpark => true
    case join: Join => join.left.isStreaming && join.right.isStreaming
    case _ => false
  }
}
