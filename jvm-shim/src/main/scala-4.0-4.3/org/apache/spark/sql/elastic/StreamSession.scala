package org.apache.spark.sql.elastic

/** The session that the batches of a query run in. */
private[elastic] object StreamSession {
  def of(execution: Moved.StreamExecution): Moved.SparkSession = StreamExecutionAccess.session(execution)
}
