package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/**
 * How many bytes a plan is expected to give: as Spark's statistics say, but for joins. Of these, without statistics of
 * columns, Spark takes the product of both sides; here a join gives at most as much as it reads.
 */
private[elastic] object ExpectedBytes {

  /** None where nobody knows, as of a table without statistics. */
  def of(plan: LogicalPlan): Option[Long] = Some(bytes(plan)).filter(_ < Long.MaxValue.toDouble).map(_.toLong)

  private def bytes(plan: LogicalPlan): Double = plan match {
    // One that has not run says what its plan says.
    case stage: LogicalQueryStage if said(stage) == said(stage.logicalPlan) => bytes(stage.logicalPlan)
    case unary: UnaryNode =>
      val share = said(unary) / said(unary.child)
      bytes(unary.child) * (if (share.isNaN) 1 else share)
    case leaf if leaf.children.isEmpty =>
      if (said(leaf) < leaf.conf.defaultSizeInBytes) said(leaf) else Double.PositiveInfinity
    case other => said(other).min(other.children.map(bytes).sum)
  }

  private def said(plan: LogicalPlan): Double = plan.stats.sizeInBytes.toDouble
}
