package org.apache.spark.sql.elastic

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.commons.io.IOUtils
import org.apache.hadoop.fs.Path

import org.apache.spark.elastic.Harmless
import org.apache.spark.internal.Logging
import org.apache.spark.network.util.LimitedInputStream
import org.apache.spark.sql.elastic.Moved._

/** A text of the policy beside a checkpoint, replaced as a whole. Spark ignores it, and savepoints leave it out. */
private[elastic] final class KeptText(execution: StreamExecution, name: String) extends Logging {
  import KeptText._

  private val file = new Path(new Path(execution.resolvedCheckpointRoot, Folder), name)

  /** The text to keep; of two concurrent writes, the text wanted last stays. */
  @volatile var wanted: Option[String] = None

  private def files: CheckpointFileManager =
    MovedFiles.Manager.create(file.getParent, execution.sparkSession.sessionState.newHadoopConf())

  /** The stored text, as far as it was read or written. */
  @volatile var kept: Option[String] = None

  /** Read the text; a query starts without one that cannot be read. */
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
