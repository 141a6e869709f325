package org.apache.spark.sql.elastic

import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec

/** The source of a query that a scan reads, of the second API only: scans of others do not say it. */
private[elastic] object StreamOf {
  def unapply(scan: SparkPlan): Option[SparkDataStream] = scan match {
    case batch: MicroBatchScanExec => Some(batch.stream)
    case other: ReadsStream => other.getStream
    case _ => None
  }
}

/** A scan that says whose it is. */
private[elastic] trait ReadsStream extends SparkPlan {
  def getStream: Option[SparkDataStream]
}
