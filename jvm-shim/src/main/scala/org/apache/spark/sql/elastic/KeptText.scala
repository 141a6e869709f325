package org.apache.spark.sql.elastic

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.commons.io.IOUtils
import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.Harmless
import org.apache.spark.internal.Logging
import org.apache.spark.network.util.LimitedInputStream

import Moved._

/**
 * What the policy keeps beside a query's checkpoint: a text of this name, replaced as a whole. Spark reads none of it, and a
 * savepoint is without it.
 */
private[elastic] final class KeptText(execution: StreamExecution, name: String) extends Logging {
  import KeptText._

  private val file = new Path(new Path(execution.resolvedCheckpointRoot, Folder), name)

  /** What is to be kept; of two that are written at once the last one wanted stays. */
  @volatile var wanted: Option[String] = None

  private def files: CheckpointFileManager =
    MovedFiles.manager(file.getParent, execution.sparkSession.sessionState.newHadoopConf())

  /** What is there, as far as it was read or written. */
  @volatile var kept: Option[String] = None

  /** A query starts without what cannot be read. */
  def read(): Option[String] = {
    try {
      val manager = files
      kept = Option.when(manager.exists(file)) {
        val in = manager.open(file)
        try new String(IOUtils.toByteArray(new LimitedInputStream(in, Largest)), UTF_8)
        finally in.close()
      }
    } catch {
      case Harmless(e) =>
        logWarning(s"spark-elastic: query ${QueryRun.called(execution)}: starting without $file: $e")
    }
    kept
  }

  def write(): Unit = synchronized {
    val manager = files
    val next = wanted
    next match {
      case Some(text) =>
        manager.mkdirs(file.getParent)
        val out = manager.createAtomic(file, overwriteIfPossible = true)
        try out.write(text.getBytes(UTF_8))
        catch { case e: Throwable => out.cancel(); throw e }
        out.close()
      case None => manager.delete(file)
    }
    kept = next
  }
}

private[elastic] object KeptText {
  val Folder = "_elastic"
  private val Largest = 1 << 20
}
