package org.apache.spark.sql.elastic

/** Spark's classes whose package depends on the version: shared code takes them from here. */
private[elastic] object Moved extends MovedStreaming with MovedSession
