package org.apache.spark.sql.elastic

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.elastic.Moved.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/**
 * Names a checkpoint for code that reads and rewrites its state. Spark makes the name a URI and reads that as a path
 * again, once in its re-partitioning and once more in its reader. If the URI escapes a character (a space, `%`, `#`),
 * they would look in folders of other names, and leave some behind. Such a checkpoint gets a second name without
 * these: a mount of Hadoop's, by settings of the query's session, which also reach its tasks. It has its own scheme
 * because Hadoop's FileContext, which Spark would use for `viewfs`, makes the same mistake.
 */
private[elastic] object StateRoot {
  private val Scheme = "spark-elastic"

  def apply(session: SparkSession, checkpoint: String): String = {
    val path = new Path(checkpoint)
    if (!StreamExecution.containsSpecialCharsInPath(path)) checkpoint
    else {
      val fs = path.getFileSystem(session.sessionState.newHadoopConf())
      val uri = fs.makeQualified(path).toUri.toString
      // Hadoop caches file systems by their names.
      val mount = UUID.nameUUIDFromBytes(uri.getBytes(UTF_8))
      val conf = session.sessionState.conf
      conf.setConfString(s"fs.$Scheme.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
      conf.setConfString(s"fs.viewfs.mounttable.$mount.link./checkpoint", uri)
      s"$Scheme://$mount/checkpoint"
    }
  }
}
