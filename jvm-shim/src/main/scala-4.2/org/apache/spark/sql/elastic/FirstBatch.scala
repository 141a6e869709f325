package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.execution.streaming.checkpointing.CommitLog
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, MicroBatchExecutionContext}

/** The first micro-batch after the checkpoint was read again. */
private[elastic] abstract class FirstBatch(execution: MicroBatchExecution, before: MicroBatchExecutionContext)
    extends MicroBatchExecutionContext(
      execution.id,
      execution.runId,
      execution.name,
      execution.triggerClock,
      StreamExecutionAccess.sources(execution).toSeq,
      execution.sink,
      MicroBatchAccess.progressReporter(execution),
      -1,
      execution.sparkSession,
      before.offsetLogFormatVersionOpt,
      None)

/** The format that a run commits with, which its log read when it was made. */
private[elastic] object CommitFormat {
  private lazy val field =
    Hidden.field("org.apache.spark.sql.execution.streaming.checkpointing.CommitLog#defaultVersion:I")

  def use(log: CommitLog, format: Int): Unit = field.setInt(log, format)
}
