package org.apache.spark.sql.elastic

import org.apache.spark.sql.classic

/** The session of an application that runs in the driver. */
private[elastic] trait MovedSession {
  type SparkSession = classic.SparkSession
}
