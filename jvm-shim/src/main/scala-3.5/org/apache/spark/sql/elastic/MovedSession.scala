package org.apache.spark.sql.elastic

import org.apache.spark.sql

/** The session of an application: there is one kind of it. */
private[elastic] trait MovedSession {
  type SparkSession = sql.SparkSession
}

/** A micro-batch. A run has one state for all of them, so this is only a mark. */
private[elastic] trait MovedBatch {
  final class Batch
}
