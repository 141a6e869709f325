package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, RDDScanExec, SparkPlan, SQLExecutionRDD}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec

import Moved.{SparkSession, StateStoreWriter}

/**
 * Lets jobs over a micro-batch know the format of its query's state, whoever runs them. A task finds it in the local
 * properties of its job. These have it where the query's session or its thread runs that, and not where a `foreachBatch`
 * hands its rows to another session in a pool's thread, as merges into tables do. The thread keeps the property: only
 * state goes by it, and each query's session says its own.
 */
private[elastic] final case class BatchFormatRule(session: SparkSession) extends Rule[SparkPlan] {
  import BatchFormatRule._

  override def apply(plan: SparkPlan): SparkPlan = UnlessItFails(plan) {
    // A plan that has state of its own is a micro-batch: its session says the format.
    if (!plan.exists(_.isInstanceOf[StateStoreWriter]))
      for (key <- CheckpointFormat.Key; format <- batches(plan).flatMap(settings(_).get(key)).headOption)
        session.sparkContext.setLocalProperty(key, format)
    plan
  }
}

private[elastic] object BatchFormatRule {
  import ElasticExtensions._

  private lazy val sqlConfigs = Hidden.field("org.apache.spark.sql.execution.SQLExecutionRDD#sqlConfigs")

  /** The rows of another query that is run with this one, as those of a micro-batch are. */
  private def batches(plan: SparkPlan): Seq[SQLExecutionRDD] = plan.collect {
    case scan: RDDScanExec => Seq(scan.rdd).collect { case rows: SQLExecutionRDD => rows }
    case cached: InMemoryTableScanExec => batches(cached.relation.cachedPlan)
    case adaptive: AdaptiveSparkPlanExec => batches(adaptive.inputPlan)
  }.flatten

  /** The settings of the session that these rows come from. */
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
