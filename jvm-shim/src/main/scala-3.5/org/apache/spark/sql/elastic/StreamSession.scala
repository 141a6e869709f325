package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden

/** The session that the batches of a query run in, which is private in Spark. */
private[elastic] object StreamSession {
  private lazy val field =
    Hidden.field("org.apache.spark.sql.execution.streaming.StreamExecution#sparkSessionForStream")

  def of(execution: Moved.StreamExecution): Moved.SparkSession = field.get(execution).asInstanceOf[Moved.SparkSession]
}
