package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/**
 * Estimates the bytes that a plan yields from Spark's statistics, except for joins. Without column statistics Spark
 * multiplies both sides of a join: safe for broadcasts, exabytes after three. Here it yields at most what it reads.
 */
private[elastic] object ExpectedBytes {

  /** Return None if unknown, as for a table without statistics. */
  def of(plan: LogicalPlan): Option[Long] = Some(bytes(plan)).filter(_ < Long.MaxValue.toDouble).map(_.toLong)

  private def bytes(plan: LogicalPlan): Double = plan match {
    // A stage that has not run has the statistics of its plan.
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
