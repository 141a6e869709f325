package org.apache.spark.sql.elastic

import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase
import org.apache.spark.sql.execution.streaming.checkpointing.{OffsetSeqMetadata, OffsetSeqMetadataV2}
import org.apache.spark.sql.execution.streaming.runtime._
import org.apache.spark.sql.internal.SQLConf

/** The sources of a run, which also has them by id. */
private[elastic] object RunSources {

  /** Replace the sources of a run while `body` runs. */
  def replacedWhile(execution: MicroBatchExecution, by: SparkDataStream => SparkDataStream)(body: => Unit): Unit = {
    val (sources, ids) = (StreamExecutionAccess.sources(execution).toSeq, SourceIdAccess.get(execution))
    MicroBatchAccess.use(execution, sources.map(by))
    SourceIdAccess.set(execution, ids.map { case (id, source) => id -> by(source) })
    try body
    finally {
      MicroBatchAccess.use(execution, sources)
      SourceIdAccess.set(execution, ids)
    }
  }

  /** Report the latest offsets read to new sources that accept them. */
  def tellLatest(execution: MicroBatchExecution): Unit =
    AcceptsLatestSeenOffsetHandler.setLatestSeenOffsetOnSources(
      execution.offsetLog.getLatest().map(_._2),
      StreamExecutionAccess.sources(execution).toSeq,
      SourceIdAccess.get(execution))

  /** Return the end offsets of a micro-batch, as its log has them. */
  def offsets(execution: MicroBatchExecution, batch: MicroBatchExecutionContext): String =
    batch.endOffsets
      .toOffsets(StreamExecutionAccess.sources(execution).toSeq, SourceIdAccess.get(execution), batch.offsetSeqMetadata)
      .toString
}

private[elastic] object FirstCount {

  /** Replace the count of a new checkpoint's first batch, which Spark recorded before the policy could be asked. */
  def replaceCount(partitions: Int, first: MicroBatchExecutionContext, session: Moved.SparkSession): Unit = {
    session.conf.set(SQLConf.STATEFUL_SHUFFLE_PARTITIONS_INTERNAL.key, partitions.toString)
    val changed = SQLConf.SHUFFLE_PARTITIONS.key -> partitions.toString
    first.offsetSeqMetadata = first.offsetSeqMetadata match {
      case m: OffsetSeqMetadata => m.copy(conf = m.conf + changed)
      case m: OffsetSeqMetadataV2 => m.copy(conf = m.conf + changed)
      case other => other
    }
  }
}

/** A scan that shows the metrics that its source reports. */
private[elastic] trait PostsMetrics extends DataSourceV2ScanExecBase {
  protected def postMetrics(): Unit = postDriverMetrics(scan.reportDriverMetrics())
}
