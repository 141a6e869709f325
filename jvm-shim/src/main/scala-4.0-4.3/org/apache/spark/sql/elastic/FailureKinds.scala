package org.apache.spark.sql.elastic

import org.apache.spark.SparkThrowable

/** How Spark names what has gone wrong. */
private[elastic] object FailureKinds {
  def condition(e: SparkThrowable): Option[String] = Option(e.getCondition)
}
