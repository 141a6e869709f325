package org.apache.spark.sql.elastic

/** Spark's classes that stand elsewhere in other versions: shared code takes them from here. */
private[elastic] object Moved extends MovedStreaming with MovedSession
