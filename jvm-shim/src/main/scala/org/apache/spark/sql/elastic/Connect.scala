package org.apache.spark.sql.elastic

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink

import Moved.StreamExecution

/** Facts about Spark Connect, whose server runs in this driver; its classes may be absent. */
private[elastic] object Connect {

  /** Prefix of the tags that the server gives to the jobs of an operation; the operation's id comes last. */
  private val Tag = "SparkConnect_OperationTag_"

  /** Return the client operation that the calling thread works for, or that started this thread's query. */
  def operation(sc: SparkContext): Option[String] =
    sc.getJobTags().collectFirst { case tag if tag.startsWith(Tag) => tag.drop(tag.lastIndexOf('_') + 1) }

  /**
   * Whether a query's batches run in the client's session and not in the query's own. Spark takes the format of
   * checkpoints from the session that runs a task, and the client's would not know one chosen for the query alone.
   */
  def runsBatchesElsewhere(execution: StreamExecution): Boolean =
    execution.sink.isInstanceOf[ForeachBatchSink[_]] && operation(execution.sparkSession.sparkContext).isDefined
}
