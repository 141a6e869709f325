package org.apache.spark.sql.elastic

import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.Hidden
import org.apache.spark.sql.elastic.Moved._

/** The state of a checkpoint. `batch` is the last committed one; `pending` is set if another started after it. */
private[elastic] case class CheckpointFacts(
    partitions: Int,
    batch: Option[Long],
    provider: String,
    format: Int,
    pending: Boolean)

private[elastic] object CheckpointFacts {

  /** Read the checkpoint of a query; None if it has no batch. */
  def of(execution: StreamExecution): Option[CheckpointFacts] = {
    val logs = new CheckpointLogs(StreamSession.of(execution), execution.resolvedCheckpointRoot)
    logs.offsets.getLatest().flatMap { case (batch, offsets) =>
      CheckpointFormat.settings(offsets).map { case (partitions, provider) =>
        val commit = logs.commits.getLatest()
        CheckpointFacts(
          partitions,
          commit.map(_._1),
          provider,
          commit.fold(1) { case (_, metadata) => CheckpointFormat.version(metadata) },
          !commit.exists(_._1 == batch))
      }
    }
  }
}

/** The logs of a checkpoint, created for each look because Spark's logs cache what they have read. */
private[elastic] final class CheckpointLogs(session: SparkSession, root: String) {
  lazy val offsets = new OffsetSeqLog(session, new Path(root, "offsets").toString)
  lazy val commits = new CommitLog(session, new Path(root, "commits").toString)
}

/**
 * The log of a file sink, which is private in Spark. It has an entry for each micro-batch, and about every tenth one
 * compacts all entries so far. Spark reads and continues the log from there, and fails if an entry is missing.
 */
private[elastic] object SinkLog {
  private lazy val field = Hidden.field(MovedFields.SinkLog)

  def of(sink: FileStreamSink): FileStreamSinkLog = field.get(sink).asInstanceOf[FileStreamSinkLog]

  /** Let the log continue after a micro-batch although the sink has not had those before it, which wrote nothing. */
  def fill(log: FileStreamSinkLog, batch: Long): Unit = {
    val last = log.getLatestBatchId().getOrElse(-1L)
    val missing = Iterator.iterate(batch)(_ - 1).takeWhile(_ > last)
    // Two are necessary and sufficient: Spark infers the distance between compactions from them.
    val compactions = missing.filter(log.batchIdToPath(_).getName.endsWith(".compact")).take(2).toList
    lazy val files = log.allFiles()
    compactions.reverse.foreach(b => check(b, log.addNewBatchByStream(b)(log.serialize(files, _))))
    for (b <- compactions.headOption.getOrElse(last) + 1 to batch) check(b, log.add(b, Array.empty))
  }

  private def check(batch: Long, isAdded: Boolean): Unit =
    if (!isAdded)
      throw new IllegalStateException(s"another writer has written micro-batch $batch to the log of the sink")
}
