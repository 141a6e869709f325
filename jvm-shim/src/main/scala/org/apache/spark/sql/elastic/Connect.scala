package org.apache.spark.sql.elastic

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink

import Moved.StreamExecution

/** What is to be known of Spark Connect, whose server runs in this driver; its classes may not be there. */
private[elastic] object Connect {

  /** How the server tags the jobs of an operation; the operation's id comes last. */
  private val Tag = "SparkConnect_OperationTag_"

  /** The client's operation that the calling thread works for, or, as a query's stream thread, was started by. */
  def operation(sc: SparkContext): Option[String] =
    sc.getJobTags().collectFirst { case tag if tag.startsWith(Tag) => tag.drop(tag.lastIndexOf('_') + 1) }

  /**
   * Whether a query's batches are run by the client's session, and not by the query's own. Spark looks up the format of
   * checkpoints in the settings of whoever runs a task: that session would not know of one chosen for the query alone.
   */
  def runsBatchesElsewhere(execution: StreamExecution): Boolean =
    execution.sink.isInstanceOf[ForeachBatchSink[_]] && operation(execution.sparkSession.sparkContext).isDefined
}
