package org.apache.spark.sql.elastic

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.elastic.Moved.StreamExecution
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan, StreamSourceAwareSparkPlan}
import org.apache.spark.sql.internal.SQLConf

/** The session of an application that runs in the driver. */
private[elastic] trait MovedSession {
  type SparkSession = classic.SparkSession
}

/** Spark's names for errors. */
private[elastic] object FailureKinds {
  def condition(e: SparkThrowable): Option[String] = Option(e.getCondition)
}

/** The status that a query shows. */
private[elastic] object ShownStatus {
  def idle(execution: StreamExecution, message: String): Unit = {
    val context = execution.getLatestExecutionContext()
    context.updateStatusMessage(message)
    context.currentStatus = context.currentStatus.copy(isTriggerActive = false)
  }
}

private[elastic] trait FormatSince40 {

  /** Return the version of the checkpoint format that the session asks for. */
  def asked(conf: SQLConf): Int = conf.getConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION)

  /** The name of the setting for it. */
  val Key: Option[String] = Some(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key)
}

/** The source that a scan of a query reads. */
private[elastic] object StreamOf {
  def unapply(scan: SparkPlan): Option[SparkDataStream] = scan match {
    case aware: StreamSourceAwareSparkPlan => aware.getStream
    case _ => None
  }
}

/** A scan that knows its source. */
private[elastic] trait ReadsStream extends StreamSourceAwareSparkPlan

/** A file scan that copies another one. */
private[elastic] abstract class CopiedScan(scan: FileSourceScanExec)
    extends FileSourceScanExec(
      scan.relation,
      scan.stream,
      scan.output,
      scan.requiredSchema,
      scan.partitionFilters,
      scan.optionalBucketSet,
      scan.optionalNumCoalescedBuckets,
      scan.dataFilters,
      scan.tableIdentifier,
      scan.disableBucketedScan)
