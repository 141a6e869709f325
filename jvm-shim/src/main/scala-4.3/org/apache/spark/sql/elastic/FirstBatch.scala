package org.apache.spark.sql.elastic

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
      before.commitLogFormatVersionOpt,
      None)
