package org.apache.spark.sql.elastic

/** The status that a query shows. */
private[elastic] object ShownStatus {
  def idle(execution: Moved.StreamExecution, message: String): Unit = {
    val context = execution.getLatestExecutionContext()
    context.updateStatusMessage(message)
    context.currentStatus = context.currentStatus.copy(isTriggerActive = false)
  }
}
