package org.apache.spark.sql.elastic

import java.io.IOException
import java.nio.file.{Files, LinkOption, Paths, Path => LocalPath}
import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, Phaser}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.Harmless
import org.apache.spark.internal.Logging
import org.apache.spark.sql.elastic.Moved.SparkSession

/** A savepoint: the folder `path`, with a checkpoint that ends with the committed `batch`. */
private[elastic] case class Savepoint(path: String, batch: Long, bytes: Long)

/**
 * Copies checkpoints, to any file system that Hadoop supports.
 *
 * The files of a checkpoint are written once, under the number of their micro-batch, and kept for
 * `spark.sql.streaming.minBatchesToRetain` further batches. So the files of a committed batch can be copied while the
 * query continues. The copy is complete if the batch is still kept at the end.
 */
private[elastic] object Savepoint extends Logging {

  /**
   * The file that makes a folder a savepoint. It is written last, since an object store renames a folder one file
   * after another. It has the query's id and the time in epoch ms; older ones have the id alone. No copy includes it.
   */
  val Mark = ".spark-elastic"
  private val Numbered = """(\d+)(?:\D.*)?""".r

  /** The name of a file with a version of state. */
  val StateFile = """(\d+)(?:_[^.]*)?\.(?:delta|snapshot|changelog|zip)(?:\.crc)?""".r
  private val Name = """savepoint-\d{1,18}-[0-9a-f]{8}""".r
  private val NoteOf = s"""\\.($Name)\\.note""".r
  private val writing = ConcurrentHashMap.newKeySet[Path]() // notes of the savepoints that this driver is writing

  /** Why there is no savepoint, in words for the requester. */
  private final class NotTaken(why: String) extends IOException(why)

  /** Return the reason for the requester. File system errors are for the log: they reveal files and addresses. */
  def why(query: String)(e: Throwable): String = e match {
    case said: NotTaken => said.getMessage
    case _ =>
      logWarning(s"spark-elastic: query $query: could not copy a savepoint", e)
      "it could not be copied, the driver's log says why"
  }

  /**
   * Copy the checkpoint `root` as its last committed batch left it. After a failure or an interrupt, nothing is left
   * once the last thread has let go of its file, which may be a moment later. What a killed driver leaves is removed
   * by the next savepoint of the same checkpoint: a note beside it names the owner until all is written.
   *
   * @param within the folder that no link may lead out of; `http/resources.py` permits `target` by its text alone
   * @param query the query that the checkpoint belongs to
   * @param format the form that its state gets in the copy, None for the one that it has
   */
  def take(
      session: SparkSession,
      root: String,
      target: String,
      within: String,
      query: String,
      format: Option[String]): Savepoint = {
    val conf = session.sessionState.newHadoopConf()
    if (!real(target, conf).zip(real(within, conf)).forall { case (to, allowed) => to.startsWith(allowed) })
      throw new NotTaken(s"a link leads out of $within")
    val kept = session.sessionState.conf.minBatchesToRetain
    def committed = new CheckpointLogs(session, root).commits.getLatestBatchId()
    val batch = committed.getOrElse(throw new NotTaken("no micro-batch has been committed yet"))
    val from = new CheckpointFiles(new Path(root), conf)
    val folder = new CheckpointFiles(new Path(target), conf)
    val owner = ownerOf(query, from.root)
    removeUnfinished(folder, owner)
    val name = s"savepoint-$batch-${UUID.randomUUID.toString.take(8)}"
    val to = new CheckpointFiles(folder.at(name), conf)
    // After a failure, the last thread to leave deletes what was written.
    val writers = new Phaser(1) {
      override def onAdvance(phase: Int, parties: Int): Boolean = {
        val isInterrupted = Thread.interrupted()
        try discard(folder, name)
        catch { case _: IOException => } // leftovers have a note, and no mark of a savepoint
        finally {
          writing.remove(folder.at(noteOf(name)))
          if (isInterrupted) Thread.currentThread().interrupt()
        }
        true
      }
    }
    try {
      writing.add(folder.at(noteOf(name)))
      folder.write(noteOf(name), owner)
      val part = new CheckpointFiles(folder.at(partOf(name)), conf)
      val files = from.all(mayVanish = true).filter(belongs(_, batch))
      from.copy(files, part, mayVanish = true, writers) // vanished files are of older batches
      val now = committed.getOrElse(batch)
      if (now - batch >= kept) {
        throw new NotTaken(
          s"micro-batch $batch was removed from the checkpoint before it was copied, now it has $now: " +
            s"raise spark.sql.streaming.minBatchesToRetain, now $kept")
      }
      for (wanted <- format)
        try StateMover.convertCopy(session, part.root.toString, wanted)
        catch { case e: IllegalStateException => throw new NotTaken(s"its format cannot be $wanted, ${e.getMessage}") }
      val bytes = part.all(mayVanish = false).map(_.status.getLen).sum
      folder.rename(partOf(name), to.root)
      to.write(Mark, s"$query\n${System.currentTimeMillis()}")
      folder.delete(noteOf(name))
      writing.remove(folder.at(noteOf(name)))
      Savepoint(to.root.toString, batch, bytes)
    } catch {
      case e: Throwable =>
        writers.arriveAndDeregister()
        throw e
    }
  }

  private def ownerOf(query: String, root: Path) = s"$query\n$root"
  private def partOf(name: String) = s".$name.part"
  private def noteOf(name: String) = s".$name.note"

  private def discard(folder: CheckpointFiles, name: String): Unit = {
    folder.delete(s"$name/$Mark")
    Seq(name, partOf(name), noteOf(name)).foreach(folder.delete)
  }

  /** Remove what a driver left that was killed while it wrote a savepoint of the same checkpoint. */
  private def removeUnfinished(folder: CheckpointFiles, owner: String): Unit =
    try
      for {
        note @ NoteOf(name) <- folder.names("") if !writing.contains(folder.at(note))
        if folder.read(note).contains(owner)
      }
        if (folder.read(s"$name/$Mark").nonEmpty) folder.delete(note) // only this was left to do
        else {
          logInfo(s"spark-elastic: removing incomplete savepoint ${folder.at(name)}")
          discard(folder, name)
        }
    catch {
      case Harmless(e) => logWarning(s"spark-elastic: could not remove incomplete savepoints in ${folder.root}", e)
    }

  /**
   * Remove savepoints of a query beside its newest one, the oldest first, until `keep` are left. Batch numbers do not
   * give their age, since a query that starts from an older savepoint counts from there. Only folders with a name and
   * mark of the plugin are considered. Failures are left for next time, interrupted removals for the next savepoint.
   */
  def removeOlder(session: SparkSession, root: String, newest: Savepoint, query: String, keep: Int): Unit =
    try {
      val path = new Path(newest.path)
      val conf = session.sessionState.newHadoopConf()
      val folder = new CheckpointFiles(path.getParent, conf)
      val others = folder.names("").filter(name => name != path.getName && Name.pattern.matcher(name).matches)
      val ours = for (name <- others; taken <- takenAt(folder, name, query)) yield name -> taken
      for ((old, _) <- ours.sortBy(-_._2).drop(keep - 1)) {
        logInfo(s"spark-elastic: removing savepoint ${folder.at(old)}, $keep newer ones kept")
        folder.write(noteOf(old), ownerOf(query, new CheckpointFiles(new Path(root), conf).root))
        discard(folder, old)
      }
    } catch {
      case Harmless(e) => logWarning(s"spark-elastic: could not remove savepoints older than ${newest.path}", e)
    }

  /** Return when a savepoint was taken, in epoch ms, if it is one of this query. */
  private def takenAt(folder: CheckpointFiles, name: String, query: String): Option[Long] =
    folder.read(s"$name/$Mark").map(_.split('\n')).filter(_.head == query).map {
      case Array(_, ms) => ms.toLong
      case _ => folder.fs.getFileStatus(folder.at(s"$name/$Mark")).getModificationTime
    }

  /** Return where a local folder is, or will be, behind all links; None on another file system. */
  private def real(folder: String, conf: Configuration): Option[LocalPath] = {
    val path = new Path(folder)
    val uri = path.getFileSystem(conf).makeQualified(path).toUri
    Option.when(uri.getScheme == "file") {
      val local = Paths.get(uri.getPath)
      val there = Iterator.iterate(local)(_.getParent).find(Files.exists(_, LinkOption.NOFOLLOW_LINKS)).get
      there.toRealPath().resolve(there.relativize(local))
    }
  }

  /** Whether a file belongs to the checkpoint as of `batch`; state has the number of the batch after it. */
  private def belongs(file: CheckpointFile, batch: Long): Boolean = {
    val names = file.name.split('/')
    (names.head, names.last) match {
      case (_, last) if file.isHidden || file.isKept || last.endsWith(".tmp") => false
      case ("offsets" | "commits", Numbered(number)) => number.toLong <= batch
      case ("state", Numbered(number)) if names.exists(Set("_metadata", "_stateSchema")) => number.toLong <= batch
      case ("state", StateFile(version)) => version.toLong <= batch + 1
      case _ => true
    }
  }
}
