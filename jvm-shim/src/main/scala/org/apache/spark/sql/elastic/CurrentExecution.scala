package org.apache.spark.sql.elastic

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.SQLExecution

import Moved.SparkSession

/** What the calling thread plans or runs something for. */
private[spark] object CurrentExecution {

  /** The local properties that name a micro-batch to its jobs. */
  final val QueryIdKey = "sql.streaming.queryId"
  final val BatchIdKey = "streaming.sql.batchId"

  /** The local property by which jobs of ours are known. Those between two micro-batches have the former's as well. */
  final val OwnKey = "spark.elastic.own"

  /** Runs what has jobs of ours; Spark's UI says `what` of them. */
  private[elastic] def asOurs[T](sc: SparkContext, what: String)(body: => T): T = {
    val before = Seq(OwnKey, SparkContext.SPARK_JOB_DESCRIPTION).map(key => key -> sc.getLocalProperty(key))
    sc.setLocalProperty(OwnKey, "")
    sc.setJobDescription(s"spark-elastic: $what")
    try body
    finally before.foreach { case (key, value) => sc.setLocalProperty(key, value) }
  }

  /** A name for a part of a query, as far as anything tells the query from others. */
  private[elastic] def named(session: SparkSession, part: String): String = s"${id(session).getOrElse("")}:$part"

  /** What tells a query from others while it is planned and run. `df.rdd` has nothing of the kind. */
  private[elastic] def id(session: SparkSession): Option[String] = {
    // Spark Connect plans a query before it has an execution's id.
    val sc = session.sparkContext
    Option
      .when(streamingQuery(session).isEmpty)(Connect.operation(sc))
      .flatten
      .orElse(Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)))
  }

  /** Whether this thread plans a batch query of the application: nothing of a micro-batch, and nothing of ours. */
  private[elastic] def isBatch(session: SparkSession): Boolean =
    streamingQuery(session).isEmpty && session.sparkContext.getLocalProperty(OwnKey) == null

  /** The id of the streaming query whose micro-batch is planned by this thread, or by what its `foreachBatch` runs. */
  private[elastic] def streamingQuery(session: SparkSession): Option[String] =
    Option(session.sparkContext.getLocalProperty(QueryIdKey))
}
