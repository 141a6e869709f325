package org.apache.spark.sql.elastic

import org.apache.hadoop.fs.Path

import Moved._

/** Before 4.2 Spark cannot change a checkpoint's partition count, so no change has to be completed or undone. */
private[elastic] final class StateMover(execution: StreamExecution) {
  def repartition(from: Int, partitions: Int): Unit =
    throw new IllegalStateException(
      s"Spark ${execution.sparkSession.version} cannot move state from $from to $partitions partitions")
  def recover(): Boolean = false
  def beginAnew(settings: Map[String, String]): Unit = {} // the plugin chooses no store
}

private[elastic] object StateMover {
  def makeMetadata(session: SparkSession, root: Path): Unit = {} // the plugin chooses no format
}
