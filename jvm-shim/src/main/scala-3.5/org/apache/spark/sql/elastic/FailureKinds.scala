package org.apache.spark.sql.elastic

import org.apache.spark.SparkThrowable

/** How Spark names and wraps what has gone wrong. */
private[elastic] object FailureKinds {

  /** What the application is shown of it. */
  def shown(e: Throwable): Throwable = e

  def condition(e: SparkThrowable): Option[String] = Option(e.getErrorClass)
}
