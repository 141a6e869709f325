package org.apache.spark.sql.elastic

import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.internal.SQLConf

import Moved._

/** The sources of a run. */
private[elastic] object RunSources {

  /** Lets a run have other sources while `body` runs. */
  def replacedWhile(execution: MicroBatchExecution, by: SparkDataStream => SparkDataStream)(body: => Unit): Unit = {
    val sources = StreamExecutionAccess.sources(execution)
    MicroBatchAccess.use(execution, sources.map(by))
    try body
    finally MicroBatchAccess.use(execution, sources)
  }

  /** Tells new sources what was last read, as far as they want to know. */
  def tellLatest(execution: MicroBatchExecution): Unit =
    LatestSeen.tell(execution.offsetLog.getLatest().map(_._2), StreamExecutionAccess.sources(execution))

  /** What a micro-batch reads up to, as it stands in its log. */
  def offsets(execution: MicroBatchExecution, batch: Batch): String =
    batch.endOffsets.toOffsetSeq(StreamExecutionAccess.sources(execution), batch.offsetSeqMetadata).toString
}

private[elastic] object FirstCount {

  /** Gives the first batch of a new checkpoint another count than Spark has noted before anybody could be asked. */
  def replaceCount(partitions: Int, first: Batch, session: SparkSession): Unit = {
    val changed = SQLConf.SHUFFLE_PARTITIONS.key -> partitions.toString
    val metadata = first.offsetSeqMetadata
    first.offsetSeqMetadata = metadata.copy(conf = metadata.conf + changed)
  }
}
