package org.apache.spark.sql.elastic

import java.io.FileNotFoundException
import java.util.concurrent.{Phaser, TimeUnit}

import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.Harmless
import org.apache.spark.internal.Logging
import org.apache.spark.sql.elastic.Moved._

/**
 * Starts a new checkpoint from a savepoint. Meanwhile a note in the checkpoint says so, and the newest offsets are
 * copied last. So an interrupted copy is recognized: the next start repeats it, or undoes it if none is named. (The
 * logs alone do not show it: those of asynchronous progress tracking have gaps.)
 */
private[elastic] object Restore extends Logging {
  private val Note = ".spark-elastic-restore"
  private val MostSeconds = 30L
  // Spark's in a checkpoint, beside its metadata. There may be other files of the user.
  private val Folders = Seq("commits", "offsets", "sources", "state")

  /**
   * Copy a savepoint to a checkpoint, unless that has a micro-batch. The checkpoint keeps its query id.
   *
   * @param sinkLog the log of a sink that skips micro-batches up to its last one
   * @return whether the savepoint was copied
   */
  def apply(session: SparkSession, savepoint: String, root: String, sinkLog: => Option[FileStreamSinkLog]): Boolean = {
    val conf = session.sessionState.newHadoopConf()
    val to = new CheckpointFiles(new Path(root), conf)
    val isNew = isCutShort(to) || new CheckpointLogs(session, root).offsets.getLatestBatchId().isEmpty
    if (isNew) {
      val from = new CheckpointFiles(new Path(savepoint), conf)
      // Savepoints of older versions include what the policy had kept.
      val wanted = from.all(mayVanish = false).filterNot(f => f.isHidden || f.isKept || f.name == "metadata")
      val (offsets, others) = wanted.partition(_.name.startsWith("offsets/"))
      val (newest, batch) = offsets
        .flatMap(f => f.status.getPath.getName.toLongOption.map(f -> _))
        .maxByOption(_._2)
        .getOrElse(throw new FileNotFoundException(s"$savepoint is no savepoint: it has no offsets"))
      if (from.read(Savepoint.Mark).isEmpty)
        throw new FileNotFoundException(
          s"$savepoint is no complete savepoint: it has no file ${Savepoint.Mark}, which is written last; name another " +
            "one, or copy this one again with its hidden files")
      val log = sinkLog
      log.flatMap(_.getLatestBatchId()).filter(_ > batch).foreach { sink =>
        throw new IllegalStateException(
          s"it ends with micro-batch $batch and the sink has all up to $sink: what would come as ${batch + 1} to " +
            s"$sink would be left out; write to another folder, or start from a savepoint of $sink")
      }
      to.write(Note, savepoint)
      clear(to)
      // If one thread fails, the others still finish their current file, and no other begins.
      val writers = new Phaser(1) { override def onAdvance(phase: Int, parties: Int): Boolean = true }
      try {
        from.copy(others, to, mayVanish = false, writers)
        from.copy(offsets.filterNot(_ == newest), to, mayVanish = false, writers)
        log.foreach(SinkLog.fill(_, batch))
        val part = s"offsets/.$batch.part"
        from.copy(newest, to.at(part))
        to.rename(part, to.at(newest.name))
        to.delete(Note)
      } catch {
        case e: Throwable =>
          // Spark creates the sources before the query ends with this, and they read what is in their folders.
          try {
            writers.awaitAdvanceInterruptibly(writers.arriveAndDeregister(), MostSeconds, TimeUnit.SECONDS)
            clear(to)
          } catch { case Harmless(_) => } // the next start does it
          throw e
      }
    }
    isNew
  }

  /** Make a checkpoint new again after an interrupted start from a savepoint. */
  def takeBack(session: SparkSession, root: String): Unit = {
    val checkpoint = new CheckpointFiles(new Path(root), session.sessionState.newHadoopConf())
    val isOurs =
      try isCutShort(checkpoint)
      catch { case Harmless(e) => logWarning(s"spark-elastic: could not inspect $root: $e"); false }
    if (isOurs) {
      logWarning(
        s"spark-elastic: $root starts without a savepoint: an interrupted start from one is undone, since none is named " +
          "any more")
      clear(checkpoint)
      checkpoint.delete(Note)
    }
  }

  private def isCutShort(checkpoint: CheckpointFiles): Boolean = checkpoint.fs.exists(checkpoint.at(Note))

  /** Keep the folders themselves: Spark may have made them for this run, and lists them. */
  private def clear(checkpoint: CheckpointFiles): Unit =
    for (folder <- Folders; name <- checkpoint.names(folder)) checkpoint.delete(s"$folder/$name")
}
