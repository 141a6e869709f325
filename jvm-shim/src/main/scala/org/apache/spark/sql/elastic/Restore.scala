package org.apache.spark.sql.elastic

import java.io.FileNotFoundException
import java.util.concurrent.{Phaser, TimeUnit}

import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.Harmless
import org.apache.spark.internal.Logging

import Moved._

/**
 * Lets a new checkpoint begin with what a savepoint has. While that is under way, a note in the checkpoint says so, and
 * the newest offsets come after all else. So one that is cut short is known, and is begun anew by the next start, or
 * taken back where that names no savepoint.
 */
private[elastic] object Restore extends Logging {
  private val Note = ".spark-elastic-restore"

  private val MostSeconds = 30L

  /** What Spark has in a checkpoint beside its metadata. There may be other things of the user. */
  private val Folders = Seq("commits", "offsets", "sources", "state")

  /**
   * Leaves a checkpoint alone that has a micro-batch; another one keeps the query id that it has got.
   *
   * @param sinkLog of a sink that leaves out micro-batches up to the last one that it has
   * @return whether the savepoint was copied
   */
  def apply(session: SparkSession, savepoint: String, root: String, sinkLog: => Option[FileStreamSinkLog]): Boolean = {
    val conf = session.sessionState.newHadoopConf()
    val to = new CheckpointFiles(new Path(root), conf)
    val isNew = isCutShort(to) || new CheckpointLogs(session, root).offsets.getLatestBatchId().isEmpty
    if (isNew) {
      val from = new CheckpointFiles(new Path(savepoint), conf)
      // Savepoints of older versions have what the policy had kept.
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
      // Where one thread fails, those that write still do so for a moment, and no other begins.
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
          // Spark makes the sources before the query ends with this, and they read what there is of theirs.
          try {
            writers.awaitAdvanceInterruptibly(writers.arriveAndDeregister(), MostSeconds, TimeUnit.SECONDS)
            clear(to)
          } catch { case Harmless(_) => } // the next start does it
          throw e
      }
    }
    isNew
  }

  /** Makes a checkpoint new again that a start from a savepoint has left which was cut short. */
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

  /** The folders stay: Spark may have made them for this run, and lists them. */
  private def clear(checkpoint: CheckpointFiles): Unit =
    for (folder <- Folders; name <- checkpoint.names(folder)) checkpoint.delete(s"$folder/$name")
}
