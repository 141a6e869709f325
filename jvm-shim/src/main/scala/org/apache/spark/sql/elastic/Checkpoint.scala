package org.apache.spark.sql.elastic

import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.Hidden

import Moved._

/** What a checkpoint says of itself. `batch` is the last committed one; `pending`: another one was started after it. */
private[elastic] case class CheckpointFacts(
    partitions: Int,
    batch: Option[Long],
    provider: String,
    format: Int,
    pending: Boolean)

private[elastic] object CheckpointFacts {

  /** Reads the checkpoint of a query; nothing for one without a batch. */
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

/** The logs of a checkpoint, made anew for each look: Spark's logs remember what they have read. */
private[elastic] final class CheckpointLogs(session: SparkSession, root: String) {
  lazy val offsets = new OffsetSeqLog(session, new Path(root, "offsets").toString)
  lazy val commits = new CommitLog(session, new Path(root, "commits").toString)
}

/**
 * The log of a file sink, which keeps it to itself: an entry for each micro-batch, and all of them up to then in each tenth
 * or so. Spark reads it, and goes on with it, from there on, and fails where one is missing.
 */
private[elastic] object SinkLog {
  private lazy val field = Hidden.field(MovedFields.SinkLog)

  def of(sink: FileStreamSink): FileStreamSinkLog = field.get(sink).asInstanceOf[FileStreamSinkLog]

  /** Lets it go on after a micro-batch though the sink has not had those before it: they have written nothing there. */
  def fill(log: FileStreamSinkLog, batch: Long): Unit = {
    val last = log.getLatestBatchId().getOrElse(-1L)
    val missing = Iterator.iterate(batch)(_ - 1).takeWhile(_ > last)
    // Two are enough, and no less: Spark tells by them how many entries come from one to the next.
    val compactions = missing.filter(log.batchIdToPath(_).getName.endsWith(".compact")).take(2).toList
    lazy val files = log.allFiles()
    compactions.reverse.foreach(b => check(b, log.addNewBatchByStream(b)(log.serialize(files, _))))
    for (b <- compactions.headOption.getOrElse(last) + 1 to batch) check(b, log.add(b, Array.empty))
  }

  private def check(batch: Long, isAdded: Boolean): Unit =
    if (!isAdded)
      throw new IllegalStateException(s"somebody else has written micro-batch $batch to the log of the sink")
}
