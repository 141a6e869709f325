package org.apache.spark.sql.elastic

import Moved._

/** The first micro-batch after the checkpoint was read again. */
private[elastic] abstract class FirstBatch(execution: MicroBatchExecution, before: Batch)
    extends Batch(
      execution.id,
      execution.runId,
      execution.name,
      execution.triggerClock,
      StreamExecutionAccess.sources(execution),
      execution.sink,
      MicroBatchAccess.progressReporter(execution),
      -1,
      execution.sparkSession,
      None)
