package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.streaming.checkpointing.CommitLog
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, MicroBatchExecutionContext}
import org.apache.spark.sql.internal.SQLConf

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
      before.commitLogFormatVersionOpt.map(math.max(_, CommitFormat.of(execution))),
      None)

/** The format that a run commits with: each micro-batch takes that of the one before it. */
private[elastic] object CommitFormat {
  def of(execution: MicroBatchExecution): Int =
    execution.sparkSessionForStream.sessionState.conf.getConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION)

  def use(log: CommitLog, format: Int): Unit = {} // `FirstBatch` does it
}
