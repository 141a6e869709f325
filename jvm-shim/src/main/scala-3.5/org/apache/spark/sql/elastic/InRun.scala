package org.apache.spark.sql.elastic

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.internal.SQLConf

import Moved._

/**
 * What a new run would do, within the one that there is: its checkpoint is read again, on the stream thread and between
 * two micro-batches. The run, its handle, its sources and its sink stay as they are.
 */
private[elastic] final class InRun(execution: MicroBatchExecution, query: QueryRun) {

  /** There is nothing that a re-partitioning could have left. */
  def look(): Unit = {}

  /** Gives the query another count, one with state before its first micro-batch. Returns whether state was moved. */
  def repartition(partitions: Int, next: Batch): Boolean = {
    if (query.stateful && execution.offsetLog.getLatestBatchId().isDefined) {
      new StateMover(execution).repartition(query.partitions, partitions)
    }
    query.use(partitions)
    if (query.stateful) {
      // Spark has noted the count of a new checkpoint before anybody could be asked.
      val metadata = MicroBatchAccess.metadata(execution)
      val changed = SQLConf.SHUFFLE_PARTITIONS.key -> partitions.toString
      MicroBatchAccess.setMetadata(execution, metadata.copy(conf = metadata.conf + changed))
    }
    false
  }

  /** There is nothing that a re-partitioning could have begun. */
  def recover(): Unit = {}

  /**
   * Lets what has failed come next.
   *
   * @param again whether it has failed before
   */
  def retry(next: Batch, again: Boolean): Unit = {
    execution.sparkSession.sparkContext.cancelJobGroup(execution.runId.toString)
    if (query.stateful) execution.sparkSession.streams.stateStoreCoordinator.deactivateInstances(execution.runId)
    if (execution.errorNotifier.getError().nonEmpty) execution.errorNotifier.markError(null)
    // The checkpoint is read again with the next trigger, and Spark then reads the last batch of old sources once more.
    NewSources.make(execution)
    InRun.forget(execution)
  }

  /** Whether a micro-batch is in the log, and has to run before anything else. */
  def isStarted(batch: Batch): Boolean = InRun.isStarted(execution)

  /** What a micro-batch was to read up to; nothing until that is in its log. */
  def offsets(batch: Batch): String =
    if (!isStarted(batch)) ""
    else
      execution.availableOffsets
        .toOffsetSeq(StreamExecutionAccess.sources(execution).toSeq, MicroBatchAccess.metadata(execution))
        .toString
}

private[elastic] object InRun {
  private lazy val started =
    Hidden.field("org.apache.spark.sql.execution.streaming.MicroBatchExecution#isCurrentBatchConstructed:Z")

  def isStarted(execution: MicroBatchExecution): Boolean = started.getBoolean(execution)

  /** Lets the next trigger read the checkpoint first, as at the start of a run. */
  def forget(execution: MicroBatchExecution): Unit = {
    started.setBoolean(execution, false)
    MicroBatchAccess.forgetBatch(execution)
    execution.committedOffsets = new StreamProgress
    execution.availableOffsets = new StreamProgress
    execution.latestOffsets = new StreamProgress
  }
}
