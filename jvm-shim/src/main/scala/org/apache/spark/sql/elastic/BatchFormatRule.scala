package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.elastic.ElasticExtensions._
import org.apache.spark.sql.elastic.Moved.{SparkSession, StateStoreWriter}
import org.apache.spark.sql.execution.{ColumnarRule, RDDScanExec, SparkPlan, SQLExecutionRDD}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec

/**
 * Passes the format of a query's state on to all jobs over its micro-batches. A task finds the format in the local
 * properties of its job. The query's session or thread sets them, but not if a `foreachBatch` hands its rows to
 * another session in a thread pool, as merges into tables do. The thread keeps the property: only state depends on
 * it, and each query's session sets its own.
 */
private[elastic] final case class BatchFormatRule(session: SparkSession) extends Rule[SparkPlan] {
  import BatchFormatRule._

  override def apply(plan: SparkPlan): SparkPlan = UnlessItFails(plan) {
    // A plan with state of its own is a micro-batch, and its session sets the format.
    if (!plan.exists(_.isInstanceOf[StateStoreWriter]))
      for (key <- CheckpointFormat.Key; format <- batches(plan).flatMap(settings(_).get(key)).headOption)
        session.sparkContext.setLocalProperty(key, format)
    plan
  }
}

private[elastic] object BatchFormatRule {
  private lazy val sqlConfigs = Hidden.field("org.apache.spark.sql.execution.SQLExecutionRDD#sqlConfigs")

  /** Return the rows of another query that runs within this plan, as those of a micro-batch do. */
  private def batches(plan: SparkPlan): Seq[SQLExecutionRDD] = plan.collect {
    case scan: RDDScanExec => Seq(scan.rdd).collect { case rows: SQLExecutionRDD => rows }
    case cached: InMemoryTableScanExec => batches(cached.relation.cachedPlan)
    case adaptive: AdaptiveSparkPlanExec => batches(adaptive.inputPlan)
  }.flatten

  /** Return the settings of the session that these rows come from. */
  private def settings(rows: SQLExecutionRDD): Map[String, String] =
    sqlConfigs.get(rows).asInstanceOf[Map[String, String]]

  def inject(extensions: SparkSessionExtensions): Unit = {
    extensions.injectQueryStagePrepRule(session => BatchFormatRule(classic(session)))
    extensions.injectColumnar(session =>
      new ColumnarRule {
        override def preColumnarTransitions: Rule[SparkPlan] = BatchFormatRule(classic(session))
      })
  }
}
