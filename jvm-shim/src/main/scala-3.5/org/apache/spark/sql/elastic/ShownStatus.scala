package org.apache.spark.sql.elastic

/** The status that a query shows. */
private[elastic] object ShownStatus {
  def idle(execution: Moved.StreamExecution, message: String): Unit =
    StreamExecutionAccess.show(execution, execution.status.copy(message = message, isTriggerActive = false))
}
