package org.apache.spark.sql.elastic

import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.{SparkPlan, StreamSourceAwareSparkPlan}

/** The source that a scan of a query reads. */
private[elastic] object StreamOf {
  def unapply(scan: SparkPlan): Option[SparkDataStream] = scan match {
    case aware: StreamSourceAwareSparkPlan => aware.getStream
    case _ => None
  }
}

/** A scan that knows its source. */
private[elastic] trait ReadsStream extends StreamSourceAwareSparkPlan
