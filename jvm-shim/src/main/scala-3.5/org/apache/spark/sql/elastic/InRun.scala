package org.apache.spark.sql.elastic

import java.lang.reflect.InvocationTargetException

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.internal.SQLConf

/**
 * Does within a run what a new run would do: it reads the checkpoint again, on the stream thread and between two
 * micro-batches. The run, its handle, its sources and its sink stay as they are.
 */
private[elastic] final class InRun(execution: MicroBatchExecution, query: QueryRun) {
  private lazy val started =
    Hidden.field("org.apache.spark.sql.execution.streaming.MicroBatchExecution#isCurrentBatchConstructed:Z")

  private lazy val populating = Hidden.method(
    "org.apache.spark.sql.execution.streaming.MicroBatchExecution#populateStartOffsets",
    classOf[SparkSession])

  /** Does nothing: no re-partitioning could have left anything. */
  def look(): Unit = {}

  /** Change the query's count; one with state before its first micro-batch. Return whether state was moved. */
  def repartition(partitions: Int, next: Batch, converts: Boolean): Boolean = {
    if (query.stateful && execution.offsetLog.getLatestBatchId().isDefined) {
      new StateMover(execution).repartition(query.partitions, partitions)
    }
    query.use(partitions)
    if (query.stateful) {
      // Spark has recorded the count of a new checkpoint before the policy could be asked.
      val metadata = MicroBatchAccess.metadata(execution)
      val changed = SQLConf.SHUFFLE_PARTITIONS.key -> partitions.toString
      MicroBatchAccess.setMetadata(execution, metadata.copy(conf = metadata.conf + changed))
    }
    false
  }

  /** Does nothing: no re-partitioning could have begun. */
  def recover(): Unit = {}

  /** Make the failed micro-batch the next one; `again` says whether it has failed before. */
  def retry(next: Batch, again: Boolean): Unit = {
    execution.sparkSession.sparkContext.cancelJobGroup(execution.runId.toString)
    if (query.stateful) execution.sparkSession.streams.stateStoreCoordinator.deactivateInstances(execution.runId)
    if (execution.errorNotifier.getError().nonEmpty) execution.errorNotifier.markError(null)
    // Reading the checkpoint makes Spark read the last batch of V1 sources once more.
    NewSources.make(execution)(())
    val (watermarks, partitions) = (MicroBatchAccess.watermarks(execution), query.partitions)
    val written = execution.sinkCommitProgress
    forget()
    try read()
    finally MicroBatchAccess.use(execution, watermarks) // a new one would take an idle input to be at 0
    // The checkpoint's count comes with it, which for a stateless query is only the initial one.
    if (!query.stateful) query.use(partitions)
    execution.sinkCommitProgress = written // shown while a query is idle
  }

  /** Read the checkpoint before the first trigger, as later versions do: in it, that would undo an ordered count. */
  def read(): Unit = {
    LatestSeen.setLatestSeenOffsetOnSources(
      execution.offsetLog.getLatest().map(_._2),
      StreamExecutionAccess.sources(execution).toSeq)
    try populating.invoke(execution, query.session)
    catch { case e: InvocationTargetException => throw e.getCause }
  }

  /** Whether a micro-batch is in the log, and so has to run before anything else. */
  def isStarted(batch: Batch): Boolean = started.getBoolean(execution)

  /** Return the end offsets of a micro-batch; empty until its log has them. */
  def offsets(batch: Batch): String =
    if (!isStarted(batch)) ""
    else
      execution.availableOffsets
        .toOffsetSeq(StreamExecutionAccess.sources(execution).toSeq, MicroBatchAccess.metadata(execution))
        .toString

  /** Clear what the checkpoint will restore. */
  private def forget(): Unit = {
    started.setBoolean(execution, false)
    MicroBatchAccess.forgetBatch(execution)
    execution.committedOffsets = new StreamProgress
    execution.availableOffsets = new StreamProgress
    execution.latestOffsets = new StreamProgress
  }
}
