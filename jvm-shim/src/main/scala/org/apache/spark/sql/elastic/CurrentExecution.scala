package org.apache.spark.sql.elastic

import org.apache.spark.SparkContext
import org.apache.spark.sql.elastic.Moved.{SparkSession, StreamExecution}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink

/** The query or micro-batch that the calling thread plans or runs. */
private[spark] object CurrentExecution {
  // Local properties that identify a micro-batch to its jobs, and mark the plugin's own jobs, which may have all.
  final val QueryIdKey = "sql.streaming.queryId"
  final val BatchIdKey = "streaming.sql.batchId"
  final val OwnKey = "spark.elastic.own"
  private val LookMs = 100L
  private val LongestTaskMs = 30000L

  /** Run `body` with its jobs marked as the plugin's own; `what` is for Spark's UI, and any job may say the same. */
  private[elastic] def asOurs[T](sc: SparkContext, what: String)(body: => T): T = {
    val before = Seq(OwnKey, SparkContext.SPARK_JOB_DESCRIPTION).map(key => key -> sc.getLocalProperty(key))
    sc.setLocalProperty(OwnKey, "")
    sc.setJobDescription(s"spark-elastic: $what")
    try body
    finally before.foreach { case (key, value) => sc.setLocalProperty(key, value) }
  }

  /** Wait for the plugin's own tasks of this description: Spark has told them to end, and they may go on for a while. */
  private[elastic] def awaitTasks(sc: SparkContext, what: String): Unit = {
    val until = System.nanoTime() + LongestTaskMs * 1000000L
    def isRunning = sc.statusStore.activeStages().exists { stage =>
      stage.numActiveTasks > 0 && stage.description.exists(_.contains(what))
    }
    Thread.sleep(LookMs) // until Spark's listener knows of them
    while (isRunning && System.nanoTime() < until) Thread.sleep(LookMs)
  }

  /** Return a name for a part of a query, as unique as the query's id; it also has the id of a stream that runs this. */
  private[elastic] def named(in: SparkSession, part: String) = s"${(id(in) ++ streamingQuery(in)).mkString("@")}:$part"

  /** Return what identifies a query while it is planned and run, None for `df.rdd`. */
  private[elastic] def id(session: SparkSession): Option[String] = {
    // Spark Connect plans a query before that has an execution id.
    val sc = session.sparkContext
    Option
      .when(streamingQuery(session).isEmpty)(Connect.operation(sc))
      .flatten
      .orElse(Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)))
  }

  /** Whether this thread plans a batch query of the application, and no micro-batch or query of the plugin. */
  private[elastic] def isBatch(session: SparkSession): Boolean =
    streamingQuery(session).isEmpty && session.sparkContext.getLocalProperty(OwnKey) == null

  /** Return the id of the streaming query whose micro-batch, or `foreachBatch`, this thread plans. */
  private[elastic] def streamingQuery(session: SparkSession): Option[String] =
    Option(session.sparkContext.getLocalProperty(QueryIdKey))
}

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
