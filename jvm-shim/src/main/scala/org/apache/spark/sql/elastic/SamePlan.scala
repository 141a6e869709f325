package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.exchange.Exchange

import Moved.SparkSession

/** What tells one plan from another in all its executions, and whether anything can tell how it is partitioned. */
private[elastic] object SamePlan {

  /** A plan as it was before any of it has run; the hints of joins are Spark's by then. */
  def unmeasured(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case stage: LogicalQueryStage => unmeasured(stage.logicalPlan)
    case join: Join if join.hint != JoinHint.NONE => join.copy(hint = JoinHint.NONE)
  }

  /** A name of a plan over its data: of cached data the size is known once it is there, so that is left out. */
  def name(plan: LogicalPlan): String = {
    val whole = unmeasured(plan)
    val sizes = whole.collectLeaves().collect {
      case leaf if !leaf.isInstanceOf[InMemoryRelation] => leaf.stats.sizeInBytes
    }
    s"${Integer.toHexString(whole.semanticHash())}-${Integer.toHexString(sizes.hashCode)}"
  }

  /** Whether all stages have run that a part of a plan reads, and there are some. */
  def hasRun(plan: SparkPlan): Boolean = {
    val below = inputs(plan)
    below.nonEmpty && below.forall { case stage: QueryStageExec => stage.isMaterialized; case _ => false }
  }

  private def inputs(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case found @ (_: QueryStageExec | _: Exchange) => Seq(found)
    case other => other.children.flatMap(inputs)
  }

  /**
   * Whether something may tell how the shuffles of a plan are partitioned: what samples, numbers or draws rows, takes the
   * first of them, or hands them to code of the user. Only what is known not to is free of it.
   */
  def isPinned(session: SparkSession, plan: SparkPlan): Boolean =
    CurrentExecution.id(session).isEmpty || plan.exists(node => !isIndifferent(node))

  private val Package = "org.apache.spark.sql.execution."
  private val Kinds =
    Set("adaptive", "aggregate", "columnar", "datasources", "exchange", "joins", "window")
  private val Nodes = Set(
    "ExpandExec",
    "FileSourceScanExec",
    "FilterExec",
    "GenerateExec",
    "LocalTableScanExec",
    "ProjectExec",
    "RangeExec",
    "SortExec",
    "UnionExec")

  private def isIndifferent(node: SparkPlan): Boolean = {
    val name = node.getClass.getName
    val path = name.stripPrefix(Package).split('.')
    name.startsWith(Package) && (if (path.length > 1) Kinds.contains(path.head) else Nodes.contains(path.head)) &&
    node.expressions.forall(_.deterministic)
  }
}
