package org.apache.spark.sql.elastic

import java.io.{FileNotFoundException, IOException}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileUtil, Path}

import org.apache.spark.SparkException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryCheckpointMetadata
import org.apache.spark.util.ThreadUtils

/** A savepoint: the folder `path`, a checkpoint that ends with the committed `batch`. */
private[elastic] case class Savepoint(path: String, batch: Long, bytes: Long)

/**
 * Copies of checkpoints, from and to any file system that Hadoop knows.
 *
 * A checkpoint's files are written once, under the number of their micro-batch, and kept for
 * `spark.sql.streaming.minBatchesToRetain` further batches. So what belongs to a committed batch can be copied while the
 * query goes on, and is complete if the batch is still kept at the end.
 */
private[elastic] object Savepoint {
  private val Threads = 8
  private val Numbered = """(\d+)(?:\D.*)?""".r
  private val StateFile = """(\d+)(?:_[^.]*)?\.(?:delta|snapshot|changelog|zip)(?:\.crc)?""".r

  /** Copies the checkpoint `root` as its last committed batch left it; fails without leaving anything. */
  def take(session: SparkSession, root: String, target: String): Savepoint = {
    val conf = session.sessionState.newHadoopConf()
    val kept = session.sessionState.conf.minBatchesToRetain
    def committed = new StreamingQueryCheckpointMetadata(session, root).commitLog.getLatestBatchId()
    val batch = committed.getOrElse(throw new IllegalStateException("no micro-batch has been committed yet"))
    val to = new Path(target, s"savepoint-$batch-${UUID.randomUUID.toString.take(8)}")
    val part = new Path(target, s".${to.getName}.part")
    val fs = part.getFileSystem(conf)
    try {
      val from = new Path(root)
      val bytes = copy(files(from, conf).filter(f => belongs(relative(f, from, conf), batch)), from, part, conf)
      val now = committed.getOrElse(batch)
      if (now - batch >= kept) {
        throw new IOException(
          s"micro-batch $batch was removed from the checkpoint before it was copied, now it has $now: " +
            s"raise spark.sql.streaming.minBatchesToRetain, now $kept")
      }
      if (!fs.rename(part, to)) throw new IOException(s"$part could not be renamed to $to")
      Savepoint(fs.makeQualified(to).toString, batch, bytes)
    } catch {
      case e: Throwable =>
        try fs.delete(part, true)
        catch { case _: IOException => } // what stays has a name that is no savepoint's
        throw e
    }
  }

  /**
   * Lets a new checkpoint begin with what a savepoint has, under the query id that it has got; leaves one alone that has
   * a micro-batch. The last offsets come after all else: a copy that is cut short leaves a new checkpoint.
   *
   * @param written the last micro-batch that the sink has, by a log of its own; those up to it, it would leave out
   * @return whether it was copied
   */
  def restore(session: SparkSession, savepoint: String, root: String, written: => Option[Long]): Boolean = {
    val isNew = new StreamingQueryCheckpointMetadata(session, root).offsetLog.getLatestBatchId().isEmpty
    if (isNew) {
      val conf = session.sessionState.newHadoopConf()
      val (from, to) = (new Path(savepoint), new Path(root))
      val (offsets, others) = files(from, conf).partition(f => relative(f, from, conf).startsWith("offsets/"))
      val last = offsets.filter(_.getPath.getName.forall(_.isDigit)).maxByOption(_.getPath.getName.toLong)
      last.fold(throw new FileNotFoundException(s"$savepoint is no savepoint: it has no offsets")) { file =>
        val batch = file.getPath.getName.toLong
        written.filter(_ > batch).foreach { sink =>
          throw new IllegalStateException(
            s"it ends with micro-batch $batch and the sink has all up to $sink: what would come as ${batch + 1} to " +
              s"$sink would be left out; write to another folder, or start from a savepoint of $sink")
        }
        copy(others.filter(f => relative(f, from, conf) != "metadata"), from, to, conf)
        val fs = to.getFileSystem(conf)
        val part = new Path(to, s"offsets/.${file.getPath.getName}.part")
        FileUtil.copy(file.getPath.getFileSystem(conf), file, fs, part, false, true, conf)
        fs.rename(part, new Path(to, s"offsets/${file.getPath.getName}"))
        copy(offsets.filterNot(_ == file), from, to, conf)
      }
    }
    isNew
  }

  /** Whether a file is part of what was there when `batch` was committed; state has the number of the batch after it. */
  private def belongs(path: String, batch: Long): Boolean = {
    val names = path.split('/')
    (names.head, names.last) match {
      case (_, file) if names.exists(_.startsWith(".")) || file.endsWith(".tmp") => false
      case ("offsets" | "commits", Numbered(number)) => number.toLong <= batch
      case ("state", Numbered(number)) if names.exists(Set("_metadata", "_stateSchema")) => number.toLong <= batch
      case ("state", StateFile(version)) => version.toLong <= batch + 1
      case _ => true
    }
  }

  /** All files below a folder, those of a folder before those of the folders in it: a snapshot before what it refers to. */
  private def files(folder: Path, conf: Configuration): Seq[FileStatus] = {
    val fs = folder.getFileSystem(conf)
    def below(path: Path): Seq[FileStatus] = {
      val (folders, plain) =
        try fs.listStatus(path).toSeq.partition(_.isDirectory)
        catch { case _: FileNotFoundException if path != folder => (Nil, Nil) } // of a task, gone by now
      plain ++ folders.flatMap(f => below(f.getPath))
    }
    below(fs.makeQualified(folder))
  }

  private def relative(file: FileStatus, root: Path, conf: Configuration): String =
    root.getFileSystem(conf).makeQualified(root).toUri.relativize(file.getPath.toUri).getPath

  /** Returns how many bytes were copied. What has vanished meanwhile was of older batches. */
  private def copy(files: Seq[FileStatus], from: Path, to: Path, conf: Configuration): Long = {
    val (source, target) = (from.getFileSystem(conf), to.getFileSystem(conf))
    try
      ThreadUtils
        .parmap(files, "elastic-savepoint", Threads) { file =>
          try {
            FileUtil.copy(source, file, target, new Path(to, relative(file, from, conf)), false, true, conf)
            file.getLen
          } catch { case _: FileNotFoundException => 0L }
        }
        .sum
    catch { case e: SparkException if e.getCause != null => throw e.getCause } // says more than its wrapper
  }
}
