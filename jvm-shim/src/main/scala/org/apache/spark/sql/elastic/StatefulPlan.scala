package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streaming.OutputMode

/** Whether a streaming plan keeps state, and with it a partition count that its checkpoint fixes. */
private[elastic] object StatefulPlan {
  def apply(analyzed: LogicalPlan): Boolean = analyzed.exists(node => node.isStreaming && keepsState(node))

  /** Whether an operator has no keys: Spark keeps all of its state in one partition, whatever the count. */
  def hasGlobalState(analyzed: LogicalPlan, mode: OutputMode): Boolean = analyzed.exists {
    case aggregate: Aggregate => aggregate.isStreaming && aggregate.groupingExpressions.isEmpty
    // A limit of a result that is computed again with each batch keeps nothing.
    case limit: GlobalLimit => limit.isStreaming && (mode == OutputMode.Append || !limit.exists(isAggregate))
    case _ => false
  }

  /** Operators with arbitrary state, which not all versions have. */
  private val ofAnyKind = Set("TransformWithState", "TransformWithStateInPandas", "TransformWithStateInPySpark")

  private def isAggregate(node: LogicalPlan): Boolean = node.isInstanceOf[Aggregate] && node.isStreaming

  private def keepsState(node: LogicalPlan): Boolean = node match {
    case _: Aggregate | _: Distinct | _: GlobalLimit => true
    case _: Deduplicate | _: DeduplicateWithinWatermark => true
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState => true
    case join: Join => join.left.isStreaming && join.right.isStreaming
    case other => ofAnyKind.contains(other.getClass.getSimpleName)
  }
}
