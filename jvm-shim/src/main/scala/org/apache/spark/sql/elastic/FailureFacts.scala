package org.apache.spark.sql.elastic

import org.apache.spark.SparkThrowable
import org.apache.spark.elastic.QueryFailure
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryException}

/** The part of a query's failure that decisions are made from, and failures of ours in Spark's words. */
private[elastic] object FailureFacts {

  /** Longer texts are for the driver's log; the policy only shows them. */
  private val MaxText = 2000
  private val MaxCauses = 20

  def apply(e: StreamingQueryException): QueryFailure = {
    val causes = Iterator.iterate[Throwable](e.cause)(_.getCause).takeWhile(_ != null).take(MaxCauses).toSeq
    val conditions = causes.collect { case t: SparkThrowable if t.getCondition != null => t.getCondition }
    QueryFailure(
      text(causes.lastOption.getOrElse(e)),
      conditions.filterNot(_.contains("UNCATEGORIZED")).lastOption.orElse(conditions.lastOption),
      causes.map(_.getClass.getName),
      // Until a batch is planned the end is that of the last one, which is committed.
      if (e.startOffset == e.endOffset) "" else String.valueOf(e.endOffset).take(MaxText))
  }

  def text(e: Throwable): String = String.valueOf(e.getMessage).take(MaxText)

  /** As Spark wraps what ends a query; nothing has been read, and so there are no offsets. */
  def notStartedAgain(query: StreamingQuery, cause: Throwable): StreamingQueryException = {
    val message = String.valueOf(cause.getMessage)
    new StreamingQueryException(
      s"Query ${query.id} could not be started again",
      cause,
      "",
      "",
      errorClass = "STREAM_FAILED",
      messageParameters = Map("id" -> query.id.toString, "runId" -> query.runId.toString, "message" -> message))
  }
}
