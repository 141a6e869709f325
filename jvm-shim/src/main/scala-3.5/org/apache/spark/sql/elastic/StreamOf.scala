package org.apache.spark.sql.elastic

import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec

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
