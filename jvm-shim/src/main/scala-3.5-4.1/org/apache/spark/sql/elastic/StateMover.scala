package org.apache.spark.sql.elastic

import org.apache.hadoop.fs.Path

import Moved._

/** Before 4.2 Spark cannot give a checkpoint another partition count, so there is none to be ended or taken back. */
private[elastic] final class StateMover(execution: StreamExecution) {
  def repartition(from: Int, partitions: Int): Unit =
    throw new IllegalStateException(
      s"Spark ${execution.sparkSession.version} cannot move state from $from to $partitions partitions")
  def recover(): Boolean = false
  def beginAnew(settings: Map[String, String]): Unit = {} // there is no store of our choice
}

private[elastic] object StateMover {
  def makeMetadata(session: SparkSession, root: Path): Unit = {} // there is no format to be chosen
}
