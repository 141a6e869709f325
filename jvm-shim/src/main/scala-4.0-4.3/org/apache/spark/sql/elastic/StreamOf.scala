package org.apache.spark.sql.elastic

import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.{SparkPlan, StreamSourceAwareSparkPlan}

/** The source of a query that a scan reads. */
private[elastic] object StreamOf {
  def unapply(scan: SparkPlan): Option[SparkDataStream] = scan match {
    case aware: StreamSourceAwareSparkPlan => aware.getStream
    case _ => None
  }
}

/** A scan that says whose it is. */
private[elastic] trait ReadsStream extends StreamSourceAwareSparkPlan
