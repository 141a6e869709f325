package org.apache.spark.sql.elastic

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.{Harmless, Linkage, Part}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.elastic.Moved.{SparkSession, StreamExecution}
import org.apache.spark.sql.execution.streaming.checkpointing._
import org.apache.spark.sql.execution.streaming.runtime.{StreamMetadata, StreamingCheckpointConstants}
import org.apache.spark.sql.execution.streaming.sinks.FileStreamSink
import org.apache.spark.sql.execution.streaming.state.OfflineStateRepartitionUtils
import org.apache.spark.sql.internal.SQLConf

/**
 * Changes the form of a query's state: the partition count between two micro-batches or before the first one, and the
 * provider and format with it.
 */
private[elastic] final class StateMover(execution: StreamExecution) extends Logging {
  private val session = execution.sparkSessionForStream
  private val root = execution.resolvedCheckpointRoot
  private val called = QueryRun.called(execution)
  private val moving = s"the state in $root is moved"

  private def logs = new CheckpointLogs(session, root)
  private def files = new CheckpointFiles(new Path(root), session.sessionState.newHadoopConf())

  /** Move the state of `from` partitions to `partitions` with Spark's own offline re-partitioning. */
  def repartition(from: Int, partitions: Int): Unit = {
    Linkage.need(Part.StateMoves)
    CurrentExecution.asOurs(session.sparkContext, s"$moving to $partitions partitions") {
      StateMove.run(session, StateRoot(session, root), from, partitions)
    }
    closeSinkGap()
  }

  /** Give the state the form that new queries of the plugin have, and this partition count. */
  def convert(partitions: Int): Unit = {
    Linkage.need(Part.Conversions)
    val form = StateForm(partitions, StateForm.RocksDB, 2)
    if (logs.commits.getLatestBatchId().isEmpty) beginAnew(StateForm.settings(form))
    else new CheckpointRewrite(session, root)(form)
    closeSinkGap()
    useFormat(2)
  }

  /**
   * Return when the converted state first committed a micro-batch (epoch ms), 0 if it has not, if the original is still
   * kept. Where Spark has deleted that entry, the time of the conversion stands for it.
   */
  def originalSince: Option[Long] = CheckpointRewrite.kept(files).map { note =>
    val (all, committed) = (files, logs.commits.getLatestBatchId().getOrElse(-1L))
    val first = Iterator.from(1).map(note.batch + _).find(!StateForm.isRewrite(_, logs.offsets)).get
    val entry = all.at(s"commits/$first")
    if (committed < first) 0L
    else if (all.fs.exists(entry)) all.fs.getFileStatus(entry).getModificationTime
    else note.at
  }

  def dropOriginal(): Unit = new CheckpointRewrite(session, root).forget()

  /** Before `recover`: let no other driver switch to a move that it has prepared. */
  def takeOver(): Unit = cleaning(StateCopy.takeOver(session, root))

  /** After `recover`: delete what a prepared move has left that a crash cut short. The next start tries it again. */
  def cleanUp(): Unit = cleaning(StateCopy.clean(session, root))

  private def cleaning(body: => Unit): Unit =
    if (Linkage.has(Part.PreparedMoves))
      try body
      catch {
        case Harmless(e) =>
          logWarning(s"spark-elastic: query $called: could not remove a copy of its state in $root: $e")
      }

  /** Let the run go on in the format of its checkpoint: it has read its logs before. */
  private def useFormat(format: Int): Unit = {
    session.conf.set(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, format)
    CommitFormat.use(execution.commitLog, format)
    execution.offsetLog.batchCache.clear()
    execution.commitLog.batchCache.clear()
  }

  /** Complete an interrupted change, or else undo it: Spark would refuse it. Return whether there was one. */
  def recover(): Boolean = {
    val isConverted = Linkage.has(Part.Conversions) && CheckpointRewrite.isInterrupted(files) &&
      new CheckpointRewrite(session, root).recover()
    if (isConverted)
      logs.commits.getLatest().foreach { case (_, commit) => useFormat(CheckpointFormat.version(commit)) }
    closeSinkGap()
    val unfinished = unfinishedRepartition()
    unfinished.foreach { case (committed, from, partitions) =>
      logWarning(s"spark-elastic: query $called: interrupted move to $partitions partitions completed ($root)")
      try repartition(from, partitions)
      catch {
        case Harmless(e) =>
          logWarning(
            s"spark-elastic: query $called: interrupted move to $partitions partitions undone, $from stay: ${e.getMessage}")
          undo(committed)
      }
    }
    isConverted || unfinished.isDefined
  }

  /**
   * Make a committed batch the last one again. Without ids in their names, files of the state that was not committed
   * would be taken for those of the next micro-batch, which has the same number.
   */
  private def undo(committed: Long): Unit = {
    if (logs.commits.get(committed).exists(CheckpointFormat.version(_) < 2)) {
      Linkage.need(Part.Conversions)
      CurrentExecution.awaitTasks(session.sparkContext, moving) // they may still write such a file
      new CheckpointRewrite(session, root).dropState(committed)
    }
    logs.offsets.purgeAfter(committed)
  }

  /** Change the settings of a checkpoint without a committed batch: none of its state has been used. */
  def beginAnew(settings: Map[String, String]): Unit = {
    val now = logs
    for (first <- now.offsets.get(0L) if now.commits.getLatestBatchId().isEmpty) {
      val path = new Path(root)
      CheckpointFileManager
        .create(path, session.sessionState.newHadoopConf())
        .delete(new Path(path, StreamingCheckpointConstants.DIR_NAME_STATE))
      now.offsets.purgeAfter(-1L)
      now.offsets.add(0L, StateForm.put(first, settings))
    }
  }

  /** Return the last committed batch, its partition count, and the count that was to follow. */
  private def unfinishedRepartition(): Option[(Long, Int, Int)] = {
    val now = logs
    for {
      (last, offsets) <- now.offsets.getLatest()
      (committed, _) <- now.commits.getLatest()
      if last > committed && (isRepartition(last, now.offsets) || StateForm.isRewrite(last, now.offsets))
      from <- now.offsets.get(committed).flatMap(countIn)
      partitions <- countIn(offsets)
    } yield (committed, from, partitions)
  }

  /**
   * A change of form takes a batch id that the sink never sees. The log of Spark's file sink must have no gaps, or
   * it cannot be compacted and the query fails some batches later. So that batch gets an empty entry.
   */
  def closeSinkGap(): Unit = execution.sink match {
    case sink: FileStreamSink =>
      val now = logs
      for {
        (batch, _) <- now.commits.getLatest()
        if now.offsets.getLatestBatchId().contains(batch) && StateForm.isRewrite(batch, now.offsets)
      } SinkLog.fill(SinkLog.of(sink), batch)
    case _ => // keeps no such log
  }

  private def countIn(offsets: OffsetSeqBase): Option[Int] =
    offsets.metadataOpt.flatMap(OfflineStateRepartitionUtils.getShufflePartitions)

  private def isRepartition(batch: Long, offsets: OffsetSeqLog): Boolean =
    offsets.get(batch - 1).isDefined && OfflineStateRepartitionUtils.isRepartitionBatch(batch, offsets)
}

private[elastic] object StateMover {
  import StreamingCheckpointConstants._

  /** Give the state in a copy of a checkpoint another store or format. */
  def convertCopy(session: SparkSession, root: String, format: String): Unit = {
    Linkage.need(Part.Conversions)
    new CheckpointRewrite(session, root).inCopy(format)
  }

  /** Write the metadata of a checkpoint that has none and is empty, as Spark would. */
  def makeMetadata(session: SparkSession, root: Path): Unit = {
    val hadoopConf = session.sessionState.newHadoopConf()
    val file = new Path(root, DIR_NAME_METADATA)
    val files = CheckpointFileManager.create(root, hadoopConf)
    def holds(name: String): Boolean = {
      val folder = new Path(root, name)
      files.exists(folder) && files.list(folder).nonEmpty
    }
    if (!files.exists(file) && !holds(DIR_NAME_OFFSETS) && !holds(DIR_NAME_COMMITS)) {
      StreamMetadata.write(StreamMetadata(UUID.randomUUID.toString), file, hadoopConf)
    }
  }
}
