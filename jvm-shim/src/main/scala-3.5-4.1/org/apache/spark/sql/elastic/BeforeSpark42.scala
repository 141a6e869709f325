package org.apache.spark.sql.elastic

import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.PrepareMove
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase
import org.apache.spark.sql.internal.SQLConf

/** Before 4.2 Spark cannot change a checkpoint's partition count, so no change has to be completed or undone. */
private[elastic] final class StateMover(execution: StreamExecution) {
  def repartition(from: Int, partitions: Int): Unit =
    throw new IllegalStateException(
      s"Spark ${execution.sparkSession.version} cannot move state from $from to $partitions partitions")
  def convert(partitions: Int): Unit = repartition(partitions, partitions)
  def recover(): Boolean = false
  def originalSince: Option[Long] = None
  def dropOriginal(): Unit = {}
  def takeOver(): Unit = {}
  def cleanUp(): Unit = {}
  def beginAnew(settings: Map[String, String]): Unit = {} // the plugin chooses no store
}

private[elastic] object StateMover {
  def convertCopy(session: SparkSession, root: String, format: String): Unit =
    throw new IllegalStateException(s"Spark ${session.version} cannot rewrite state")
  def makeMetadata(session: SparkSession, root: Path): Unit = {} // the plugin chooses no format
}

/** Before 4.2 no state can be moved, so no move can be prepared. */
private[elastic] final class Preparation(execution: StreamExecution, query: QueryRun) {
  val hasSwitched = false
  def take(order: PrepareMove): Unit =
    query.failed(order, s"Spark ${execution.sparkSession.version} cannot move state")
  def committed(): Unit = {}
  def switchTo(partitions: Int): Boolean = false
  def settle(): Unit = {}
  def drop(why: String): Unit = {}
}

private[elastic] object DryRun {
  def apply(session: SparkSession, checkpoint: String, at: RDD[InternalRow] => RDD[(String, InternalRow)]): Unit = {}
}

/** Reads from the logs of a checkpoint how its state is kept. */
private[elastic] trait FormatBefore42 {

  /** Return the partition count and the state store provider that a batch was planned with. */
  def settings(offsets: OffsetSeq): Option[(Int, String)] =
    for {
      metadata <- offsets.metadata
      partitions <- metadata.conf.get(SQLConf.SHUFFLE_PARTITIONS.key)
      provider <- metadata.conf.get(SQLConf.STATE_STORE_PROVIDER_CLASS.key)
    } yield partitions.toInt -> provider

  def readAsWritten(plan: LogicalPlan): Unit = {} // the plugin gives no checkpoint another format
}

/** A scan that shows the metrics that its source reports. */
private[elastic] trait PostsMetrics extends DataSourceV2ScanExecBase {
  protected def postMetrics(): Unit = postDriverMetrics()
}
