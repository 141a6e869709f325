package org.apache.spark.sql.elastic

import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.elastic.Moved._
import org.apache.spark.sql.internal.SQLConf

/** The sources of a run. */
private[elastic] object RunSources {

  /** Replace the sources of a run while `body` runs. */
  def replacedWhile(execution: MicroBatchExecution, by: SparkDataStream => SparkDataStream)(body: => Unit): Unit = {
    val sources = StreamExecutionAccess.sources(execution).toSeq
    MicroBatchAccess.use(execution, sources.map(by))
    try body
    finally MicroBatchAccess.use(execution, sources)
  }

  /** Report the latest offsets read to new sources that accept them. */
  def tellLatest(execution: MicroBatchExecution): Unit =
    Moved.LatestSeen.setLatestSeenOffsetOnSources(
      execution.offsetLog.getLatest().map(_._2),
      StreamExecutionAccess.sources(execution).toSeq)

  /** Return the end offsets of a micro-batch, as its log has them. */
  def offsets(execution: MicroBatchExecution, batch: Batch): String =
    batch.endOffsets.toOffsetSeq(StreamExecutionAccess.sources(execution).toSeq, batch.offsetSeqMetadata).toString
}

private[elastic] object FirstCount {

  /** Replace the count of a new checkpoint's first batch, which Spark recorded before the policy could be asked. */
  def replaceCount(partitions: Int, first: Batch, session: SparkSession): Unit = {
    val changed = SQLConf.SHUFFLE_PARTITIONS.key -> partitions.toString
    val metadata = first.offsetSeqMetadata
    first.offsetSeqMetadata = metadata.copy(conf = metadata.conf + changed)
  }
}

/** The first micro-batch after the checkpoint was read again. */
private[elastic] abstract class FirstBatch(execution: MicroBatchExecution, before: Batch)
    extends Batch(
      execution.id,
      execution.runId,
      execution.name,
      execution.triggerClock,
      StreamExecutionAccess.sources(execution).toSeq,
      execution.sink,
      MicroBatchAccess.progressReporter(execution),
      -1,
      execution.sparkSession,
      None)

/** How the state of a checkpoint is kept. */
private[elastic] object CheckpointFormat extends FormatBefore42 with FormatSince40 {

  /** Return the version of the checkpoint format that a batch was committed with. */
  def version(commit: CommitMetadata): Int = if (commit.stateUniqueIds.exists(_.nonEmpty)) 2 else 1
}
