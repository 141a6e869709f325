package org.apache.spark.sql.elastic

import org.apache.spark.sql

/** The session of an application: there is only one kind. */
private[elastic] trait MovedSession {
  type SparkSession = sql.SparkSession
}

/** A micro-batch. A run has one state for all of them, so this is only a marker. */
private[elastic] trait MovedBatch {
  final class Batch
}
