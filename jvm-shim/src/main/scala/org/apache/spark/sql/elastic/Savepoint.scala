package org.apache.spark.sql.elastic

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, LinkOption, Paths, Path => LocalPath}
import java.util.UUID
import java.util.concurrent.{ExecutionException, Phaser}

import scala.util.Using

import org.apache.commons.io.IOUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, FileUtil, Path}

import org.apache.spark.SparkException
import org.apache.spark.elastic.Harmless
import org.apache.spark.internal.Logging
import org.apache.spark.network.util.LimitedInputStream
import org.apache.spark.util.ThreadUtils

import Moved.SparkSession

/** A savepoint: the folder `path`, a checkpoint that ends with the committed `batch`. */
private[elastic] case class Savepoint(path: String, batch: Long, bytes: Long)

/**
 * Copies of checkpoints, from and to any file system that Hadoop knows.
 *
 * A checkpoint's files are written once, under the number of their micro-batch, and kept for
 * `spark.sql.streaming.minBatchesToRetain` further batches. So what belongs to a committed batch can be copied while the
 * query continues, and is complete if the batch is still kept at the end.
 */
private[elastic] object Savepoint extends Logging {
  private val Threads = 8

  /** The file by which a savepoint of ours is known: it has the id of the query. Hidden, so that no copy takes it along. */
  private val Mark = ".spark-elastic"
  private val MostMark = 100
  private val Numbered = """(\d+)(?:\D.*)?""".r
  private val StateFile = """(\d+)(?:_[^.]*)?\.(?:delta|snapshot|changelog|zip)(?:\.crc)?""".r

  /** Why there is no savepoint, in words for whoever has asked for it. */
  private final class NotTaken(why: String) extends IOException(why)

  /** The words for who has asked. What the file system says is for the log: it tells what there is, and who listens where. */
  def why(query: String)(e: Throwable): String = e match {
    case said: NotTaken => said.getMessage
    case _ =>
      logWarning(s"spark-elastic: a savepoint of query $query could not be copied", e)
      "it could not be copied, the driver's log says why"
  }

  /**
   * Copies the checkpoint `root` as its last committed batch left it. Where it fails, or is interrupted, nothing is left
   * once the last thread has let go of its file, which may be a moment later.
   *
   * @param within the folder that no link may lead it out of
   * @param query whose it is
   */
  def take(session: SparkSession, root: String, target: String, within: String, query: String): Savepoint = {
    val conf = session.sessionState.newHadoopConf()
    if (!real(target, conf).zip(real(within, conf)).forall { case (to, allowed) => to.startsWith(allowed) })
      throw new NotTaken(s"a link leads out of $within")
    val kept = session.sessionState.conf.minBatchesToRetain
    def committed = new CheckpointLogs(session, root).commits.getLatestBatchId()
    val batch = committed.getOrElse(throw new NotTaken("no micro-batch has been committed yet"))
    val to = new Path(target, s"savepoint-$batch-${UUID.randomUUID.toString.take(8)}")
    val part = new Path(target, s".${to.getName}.part")
    val fs = part.getFileSystem(conf)
    // Where it fails, whoever leaves last deletes what was written.
    val writers = new Phaser(1) {
      override def onAdvance(phase: Int, parties: Int): Boolean = {
        val isInterrupted = Thread.interrupted()
        try fs.delete(part, true)
        catch { case _: IOException => } // what stays has a name that is no savepoint's
        finally if (isInterrupted) Thread.currentThread().interrupt()
        true
      }
    }
    try {
      val from = new Path(root)
      val bytes =
        copy(files(from, conf).filter(f => belongs(relative(f, from, conf), batch)), from, part, conf, writers)
      val now = committed.getOrElse(batch)
      if (now - batch >= kept) {
        throw new NotTaken(
          s"micro-batch $batch was removed from the checkpoint before it was copied, now it has $now: " +
            s"raise spark.sql.streaming.minBatchesToRetain, now $kept")
      }
      Using.resource(fs.create(new Path(part, Mark)))(_.write(query.getBytes(UTF_8)))
      if (!fs.rename(part, to)) throw new IOException(s"$part could not be renamed to $to")
      Savepoint(fs.makeQualified(to).toString, batch, bytes)
    } catch {
      case e: Throwable =>
        writers.arriveAndDeregister()
        throw e
    }
  }

  /**
   * Removes savepoints of a query beside its newest one, the oldest first, until `keep` are left. Only what has a name and
   * a mark of ours is looked at. What fails is left for the next time.
   */
  def removeOlder(session: SparkSession, newest: Savepoint, query: String, keep: Int): Unit =
    try {
      val path = new Path(newest.path)
      val fs = path.getFileSystem(session.sessionState.newHadoopConf())
      val others = fs.listStatus(path.getParent).toSeq.filter(f => f.isDirectory && f.getPath.getName != path.getName)
      val ours = others.map(_.getPath).collect { case at @ Named(batch) if isOf(query, at, fs) => at -> batch }
      for ((old, _) <- ours.sortBy(-_._2).drop(keep - 1)) {
        logInfo(s"spark-elastic: removes the savepoint $old, $keep newer ones are kept")
        fs.delete(old, true)
      }
    } catch { case Harmless(e) => logWarning(s"spark-elastic: older savepoints than ${newest.path} stay", e) }

  private def isOf(query: String, savepoint: Path, fs: FileSystem): Boolean =
    try
      Using.resource(fs.open(new Path(savepoint, Mark)))(in =>
        new String(IOUtils.toByteArray(new LimitedInputStream(in, MostMark)), UTF_8)) == query
    catch { case _: FileNotFoundException => false }

  private object Named {
    private val Name = """savepoint-(\d{1,18})-[0-9a-f]{8}""".r
    def unapply(path: Path): Option[Long] = Some(path.getName).collect { case Name(batch) => batch.toLong }
  }

  /**
   * Lets a new checkpoint begin with what a savepoint has, under the query id that it has got; leaves one alone that has
   * a micro-batch. The last offsets come after all else: a copy that is cut short leaves a new checkpoint.
   *
   * @param written the last micro-batch that the sink has, by a log of its own; those up to it, it would leave out
   * @return whether it was copied
   */
  def restore(session: SparkSession, savepoint: String, root: String, written: => Option[Long]): Boolean = {
    val isNew = new CheckpointLogs(session, root).offsets.getLatestBatchId().isEmpty
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
        copy(others.filterNot(f => Set("metadata", Mark)(relative(f, from, conf))), from, to, conf)
        val fs = to.getFileSystem(conf)
        val part = new Path(to, s"offsets/.${file.getPath.getName}.part")
        FileUtil.copy(file.getPath.getFileSystem(conf), file, fs, part, false, true, conf)
        fs.rename(part, new Path(to, s"offsets/${file.getPath.getName}"))
        copy(offsets.filterNot(_ == file), from, to, conf)
      }
    }
    isNew
  }

  /** Where a folder of the local file system is, or will be made, behind all links; none for one of another. */
  private def real(folder: String, conf: Configuration): Option[LocalPath] = {
    val path = new Path(folder)
    val uri = path.getFileSystem(conf).makeQualified(path).toUri
    Option.when(uri.getScheme == "file") {
      val local = Paths.get(uri.getPath)
      val there = Iterator.iterate(local)(_.getParent).find(Files.exists(_, LinkOption.NOFOLLOW_LINKS)).get
      there.toRealPath().resolve(there.relativize(local))
    }
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

  /**
   * Returns how many bytes were copied. What has vanished meanwhile was of older batches.
   *
   * @param writers whoever writes a file; who waits for the copy may be gone before them
   */
  private def copy(
      files: Seq[FileStatus],
      from: Path,
      to: Path,
      conf: Configuration,
      writers: Phaser = new Phaser(1)): Long = {
    val (source, target) = (from.getFileSystem(conf), to.getFileSystem(conf))
    try
      ThreadUtils
        .parmap(files, "elastic-savepoint", Threads) { file =>
          if (writers.register() < 0) 0L
          else
            try {
              FileUtil.copy(source, file, target, new Path(to, relative(file, from, conf)), false, true, conf)
              file.getLen
            } catch {
              case _: FileNotFoundException => 0L
              case e: Error =>
                throw new ExecutionException(e) // a future that ends with an error never ends for who waits
            } finally writers.arriveAndDeregister()
        }
        .sum
    catch { case e: SparkException if e.getCause != null => throw e.getCause } // says more than its wrapper
  }
}
