package org.apache.spark.sql.elastic

import org.apache.spark.{sql, SparkThrowable}
import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec
import org.apache.spark.sql.internal.SQLConf

/** The session of an application: there is only one kind. */
private[elastic] trait MovedSession {
  type SparkSession = sql.SparkSession
}

/** A micro-batch. A run has one state for all of them, so this is only a marker. */
private[elastic] trait MovedBatch {
  final class Batch
}

/** Spark's names for errors. */
private[elastic] object FailureKinds {
  def condition(e: SparkThrowable): Option[String] = Option(e.getErrorClass)
}

/** The status that a query shows. */
private[elastic] object ShownStatus {
  def idle(execution: StreamExecution, message: String): Unit =
    StatusAccess.show(execution, execution.status.copy(message = message, isTriggerActive = false))
}

/** The session that the batches of a query run in, which is private in Spark. */
private[elastic] object StreamSession {
  private lazy val field =
    Hidden.field("org.apache.spark.sql.execution.streaming.StreamExecution#sparkSessionForStream")

  def of(execution: StreamExecution): SparkSession = field.get(execution).asInstanceOf[SparkSession]
}

/** How the state of a checkpoint is kept. There is one format. */
private[elastic] object CheckpointFormat extends FormatBefore42 {
  def version(commit: CommitMetadata): Int = 1
  def asked(conf: SQLConf): Int = 1
  val Key: Option[String] = None
}

/** The source that a scan of a query reads, for V2 sources only: scans of others do not know it. */
private[elastic] object StreamOf {
  def unapply(scan: SparkPlan): Option[SparkDataStream] = scan match {
    case batch: MicroBatchScanExec => Some(batch.stream)
    case other: ReadsStream => other.getStream
    case _ => None
  }
}

/** A scan that knows its source. */
private[elastic] trait ReadsStream extends SparkPlan {
  def getStream: Option[SparkDataStream]
}

/** A file scan that copies another one. */
private[elastic] abstract class CopiedScan(scan: FileSourceScanExec)
    extends FileSourceScanExec(
      scan.relation,
      scan.output,
      scan.requiredSchema,
      scan.partitionFilters,
      scan.optionalBucketSet,
      scan.optionalNumCoalescedBuckets,
      scan.dataFilters,
      scan.tableIdentifier,
      scan.disableBucketedScan)
