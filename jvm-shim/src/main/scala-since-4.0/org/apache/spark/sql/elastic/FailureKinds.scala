package org.apache.spark.sql.elastic

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.execution.streaming.sources.{ForeachBatchUserFuncException, ForeachUserFuncException}

/** How Spark names and wraps what has gone wrong. */
private[elastic] object FailureKinds {

  /** What the application is shown of it. */
  def shown(e: Throwable): Throwable = e match {
    case e @ (_: ForeachBatchUserFuncException | _: ForeachUserFuncException) if e.getCause != null => e.getCause
    case e => e
  }

  def condition(e: SparkThrowable): Option[String] = Option(e.getCondition)
}
