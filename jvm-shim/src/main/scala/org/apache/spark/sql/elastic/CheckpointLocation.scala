package org.apache.spark.sql.elastic

import java.util.UUID

import scala.annotation.tailrec
import scala.util.{Failure, Success, Try}

import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.runtime.{StreamingCheckpointConstants, StreamMetadata}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/**
 * Where a query's checkpoint is, found by Spark's rules before Spark looks: the option, else a folder under
 * `spark.sql.streaming.checkpointLocation`, else a temporary one, which must outlive the runs and not go with the first.
 */
private[elastic] final class CheckpointLocation private (val path: String, temporary: Boolean) extends Logging {
  import CheckpointLocation.DeleteMs
  import StreamingCheckpointConstants._

  /** Writes the metadata of a checkpoint that has none and holds nothing. Returns what can undo it, if it did. */
  def makeMetadata(session: SparkSession): Option[Made] = {
    val hadoopConf = session.sessionState.newHadoopConf()
    val root = new Path(path)
    val file = new Path(root, DIR_NAME_METADATA)
    val files = CheckpointFileManager.create(root, hadoopConf)
    def holds(name: String): Boolean = {
      val folder = new Path(root, name)
      files.exists(folder) && files.list(folder).nonEmpty
    }
    if (files.exists(file) || holds(DIR_NAME_OFFSETS) || holds(DIR_NAME_COMMITS)) None
    else {
      val fresh = !files.exists(root)
      files.createCheckpointDirectory()
      StreamMetadata.write(StreamMetadata(UUID.randomUUID.toString), file, hadoopConf)
      Some(new Made(files, if (fresh) root else file))
    }
  }

  /** A temporary checkpoint goes when its query is over. */
  def deleteIfTemporary(session: SparkSession): Unit =
    if (temporary) {
      val root = new Path(path)
      val until = System.nanoTime() + DeleteMs * 1000000L
      // A task that was cancelled may still add a file to a folder that is being emptied.
      @tailrec def delete(): Unit = {
        Try(CheckpointFileManager.create(root, session.sessionState.newHadoopConf()).delete(root)) match {
          case Failure(_) if System.nanoTime() < until =>
            Thread.sleep(50)
            delete()
          case Failure(e) => logWarning(s"spark-elastic: cannot delete temporary checkpoint $path", e)
          case Success(_) =>
        }
      }
      delete()
    }
}

/** Something written for a query that then did not start. */
private[elastic] final class Made(files: CheckpointFileManager, what: Path) {
  def undo(): Unit = files.delete(what)
}

private[elastic] object CheckpointLocation {
  private val DeleteMs = 2000L

  /** @return nothing where Spark will refuse to start for want of a location */
  def of(
      session: SparkSession,
      name: Option[String],
      specified: Option[String],
      mayBeTemporary: Boolean): Option[CheckpointLocation] = {
    val under = session.sessionState.conf.getConf(SQLConf.CHECKPOINT_LOCATION)
    specified
      .orElse(under.map(new Path(_, name.getOrElse(UUID.randomUUID().toString)).toString))
      .map(new CheckpointLocation(_, temporary = false))
      .orElse(if (mayBeTemporary) {
        val folder = Utils.createTempDir(namePrefix = "temporary").getCanonicalPath
        Some(new CheckpointLocation(if (Utils.isWindows) folder else s"file://$folder", temporary = true))
      } else None)
  }
}
