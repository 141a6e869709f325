package org.apache.spark.sql.elastic

import org.apache.spark.SparkThrowable

/** Spark's names for errors. */
private[elastic] object FailureKinds {
  def condition(e: SparkThrowable): Option[String] = Option(e.getErrorClass)
}
