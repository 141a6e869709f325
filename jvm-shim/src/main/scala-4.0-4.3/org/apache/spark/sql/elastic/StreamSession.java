package org.apache.spark.sql.elastic;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.*;
import org.apache.spark.sql.execution.streaming.runtime.*;

/** The session that the batches of a query run in. */
interface StreamSession {
  static SparkSession of(StreamExecution execution) {
    return execution.sparkSessionForStream();
  }
}
