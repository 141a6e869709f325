package org.apache.spark.sql.elastic

import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.exchange.Exchange

/** Identifies a plan in all its executions, and tells whether its partitioning can be observed. */
private[elastic] object SamePlan {

  /** Return a plan as it was before any of it ran; the hints of joins are Spark's by then. */
  def unmeasured(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case stage: LogicalQueryStage => unmeasured(stage.logicalPlan)
    case join: Join if join.hint != JoinHint.NONE => join.copy(hint = JoinHint.NONE)
  }

  /** Return a name of a plan over its data. The size of cached data is left out: it is known only once cached. */
  def name(plan: LogicalPlan): String = {
    val whole = unmeasured(plan)
    val sizes = whole.collectLeaves().collect {
      case leaf if !leaf.isInstanceOf[InMemoryRelation] => leaf.stats.sizeInBytes
    }
    s"${Integer.toHexString(whole.semanticHash())}-${Integer.toHexString(sizes.hashCode)}"
  }

  /** Whether a part of a plan reads stages, and all of them have run. */
  def hasRun(plan: SparkPlan): Boolean = {
    val below = inputs(plan)
    below.nonEmpty && below.forall { case stage: QueryStageExec => stage.isMaterialized; case _ => false }
  }

  private def inputs(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case found @ (_: QueryStageExec | _: Exchange) => Seq(found)
    case other => other.children.flatMap(inputs)
  }

  /**
   * Whether rows may reveal how the shuffles of a plan are partitioned: some operators sample, number or draw rows,
   * take the first ones, or pass them to user code. Only those known not to are excluded.
   */
  def isPinned(session: SparkSession, plan: SparkPlan): Boolean =
    CurrentExecution.id(session).isEmpty || plan.exists(node => !isIndifferent(node))

  private val Package = "org.apache.spark.sql.execution."
  private val Kinds =
    Set("adaptive", "aggregate", "columnar", "datasources", "exchange", "joins", "window")
  private val Nodes =
    Set("Expand", "FileSourceScan", "Filter", "Generate", "LocalTableScan", "Project", "Range", "Sort", "Union")
      .map(_ + "Exec")

  private def isIndifferent(node: SparkPlan): Boolean = {
    val name = node.getClass.getName
    val path = name.stripPrefix(Package).split('.')
    name.startsWith(Package) && (if (path.length > 1) Kinds.contains(path.head) else Nodes.contains(path.head)) &&
    node.expressions.forall(_.deterministic)
  }
}
