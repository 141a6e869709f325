package org.apache.spark.sql.elastic

import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.{Linkage, Part}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution.streaming.sinks.{FileStreamSink, FileStreamSinkLog}

/**
 * What `spark-elastic checkpoint` calls, for a checkpoint that no query uses at that time. Each call throws an
 * `IllegalStateException` with the reason if it is impossible, and has then changed nothing.
 */
object OfflineCheckpoint {

  /**
   * Rewrite the state of the last committed batch as a batch of its own, and return its number.
   *
   * @param format one of `StateForm.named`
   */
  def rewrite(session: SparkSession, root: String, partitions: Int, format: String): Long =
    of(session, root)(StateForm.named(format, partitions))

  /** Complete or undo an interrupted rewrite. Return whether there was one. */
  def recover(session: SparkSession, root: String): Boolean = of(session, root).recover()

  /** Return the state as of the last committed batch: partition_key, key_bytes, value_bytes, column_family_name. */
  def rows(session: SparkSession, root: String, operator: Long, store: String): DataFrame =
    of(session, root).rows(operator, store)

  /** Take back the rewrite that is this batch, with all batches after it. */
  def undo(session: SparkSession, root: String, batch: Long): Unit = of(session, root).undo(batch - 1)

  /** Delete what is kept of the state before it was rewritten. */
  def forget(session: SparkSession, root: String): Unit = of(session, root).forget()

  /** Give the log of Spark's file sink, in the folder that it writes to, the entries of batches that wrote nothing. */
  def fillSinkLog(session: SparkSession, folder: String, batch: Long): Unit = {
    val log = new Path(folder, FileStreamSink.metadataDir).toString
    SinkLog.fill(new FileStreamSinkLog(FileStreamSinkLog.VERSION, session, log), batch)
  }

  private def of(session: SparkSession, root: String) = {
    Linkage.need(Part.Conversions)
    new CheckpointRewrite(session, root)
  }
}
