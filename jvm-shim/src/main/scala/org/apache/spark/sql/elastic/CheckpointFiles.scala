package org.apache.spark.sql.elastic

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{ExecutionException, Phaser}
import java.util.concurrent.atomic.AtomicReference

import scala.util.Using

import org.apache.commons.io.IOUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, FileUtil, Path}

import org.apache.spark.network.util.LimitedInputStream
import org.apache.spark.util.ThreadUtils

/** A file below the folder of a checkpoint, with its path relative to that folder, separated by slashes. */
private[elastic] case class CheckpointFile(name: String, status: FileStatus) {
  def isHidden: Boolean = name.split('/').exists(_.startsWith("."))

  /** Whether the policy keeps this file beside the checkpoint (KeptText), for that one query. */
  def isKept: Boolean = name.startsWith(s"${KeptText.Folder}/")
}

/** A checkpoint, or a copy of one, as a folder of any file system that Hadoop supports. */
private[elastic] final class CheckpointFiles(folder: Path, conf: Configuration) {
  private val MostText = 10000L

  val fs: FileSystem = folder.getFileSystem(conf)
  val root: Path = fs.makeQualified(folder)

  /** Return the path of a name in the folder. Hadoop would take text before a colon in it for a file system. */
  def at(name: String): Path = {
    val uri = root.toUri
    new Path(uri.getScheme, uri.getAuthority, s"${uri.getPath.stripSuffix("/")}/$name")
  }

  /** Return all files, those of a folder before those of its subfolders: a snapshot before the files it refers to. */
  def all(mayVanish: Boolean): Seq[CheckpointFile] = below(root, path => mayVanish && path != root)

  /** Return all files in a subfolder; none if it does not exist. */
  def below(name: String): Seq[CheckpointFile] = below(at(name), _ => true)

  private def below(folder: Path, mayVanish: Path => Boolean): Seq[CheckpointFile] = {
    def statuses(path: Path): Seq[FileStatus] = {
      val (folders, plain) =
        try fs.listStatus(path).toSeq.partition(_.isDirectory)
        catch { case _: FileNotFoundException if mayVanish(path) => (Nil, Nil) } // a task's, gone by now
      plain ++ folders.flatMap(f => statuses(f.getPath))
    }
    statuses(folder).map(f => CheckpointFile(root.toUri.relativize(f.getPath.toUri).getPath, f))
  }

  /** Return the start of a text; None if the file is missing, or empty as a killed writer leaves it. */
  def read(name: String, most: Long = MostText): Option[String] =
    try
      Using
        .resource(fs.open(at(name)))(in =>
          Some(new String(IOUtils.toByteArray(new LimitedInputStream(in, most)), UTF_8)))
        .filter(_.nonEmpty)
    catch { case _: FileNotFoundException => None }

  def write(name: String, text: String): Unit = Using.resource(fs.create(at(name)))(_.write(text.getBytes(UTF_8)))

  def rename(name: String, to: Path): Unit =
    if (!fs.rename(at(name), to)) throw new IOException(s"${at(name)} could not be renamed to $to")

  /** Remove a file or folder, if it exists. */
  def delete(name: String): Unit =
    if (!fs.delete(at(name), true) && fs.exists(at(name))) throw new IOException(s"${at(name)} could not be removed")

  /** Return the names in a subfolder; none if it does not exist. */
  def names(of: String): Seq[String] =
    try fs.listStatus(at(of)).toSeq.map(_.getPath.getName)
    catch { case _: FileNotFoundException => Nil }

  def copy(file: CheckpointFile, to: Path): Unit = copy(file.status, to)

  /** Copy a file, or a folder with all that is in it, to the same place in another folder. */
  def copy(name: String, to: CheckpointFiles): Unit = copy(fs.getFileStatus(at(name)), to.at(name))

  private def copy(status: FileStatus, to: Path): Unit =
    if (!FileUtil.copy(fs, status, to.getFileSystem(conf), to, false, true, conf))
      throw new IOException(s"${status.getPath} could not be copied to $to")

  /**
   * Copy files.
   *
   * @param mayVanish whether a file that is gone by now was no longer needed
   * @param writers registers each thread that writes a file; it may outlive the caller's wait
   */
  def copy(files: Seq[CheckpointFile], to: CheckpointFiles, mayVanish: Boolean, writers: Phaser = new Phaser(1)): Unit =
    CheckpointFiles.parallel("elastic-savepoint", files) { file =>
      if (writers.register() >= 0)
        try copy(file, to.at(file.name))
        catch { case _: FileNotFoundException if mayVanish => }
        finally writers.arriveAndDeregister()
    }
}

private[elastic] object CheckpointFiles {
  val Threads = 8

  /**
   * Do something for each of these, several at once, and return when all threads are done: the caller may then delete
   * what they were writing. After a failure nothing more is begun. An Error is the cause of an ExecutionException.
   */
  def parallel[A, B](threads: String, of: Seq[A], atOnce: Int = Threads)(body: A => B): Seq[B] = {
    val failure = new AtomicReference[Exception]
    val found = ThreadUtils.parmap(of, threads, atOnce) { one =>
      if (failure.get != null) None
      else
        try Some(body(one))
        catch {
          case e: Exception => failure.compareAndSet(null, e); None
          // A future that fails with one never completes.
          case e: Error => failure.compareAndSet(null, new ExecutionException(e)); None
        }
    }
    Option(failure.get).foreach(throw _)
    found.flatten
  }
}
