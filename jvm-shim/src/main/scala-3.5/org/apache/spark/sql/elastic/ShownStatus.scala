package org.apache.spark.sql.elastic

/** What a query says of itself. */
private[elastic] object ShownStatus {
  def idle(execution: Moved.StreamExecution, message: String): Unit =
    StreamExecutionAccess.show(execution, execution.status.copy(message = message, isTriggerActive = false))
}
