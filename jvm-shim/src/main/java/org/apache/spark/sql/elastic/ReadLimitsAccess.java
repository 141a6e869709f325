package org.apache.spark.sql.elastic;

import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.*;
import org.apache.spark.sql.execution.streaming.runtime.*;
import scala.collection.immutable.Map;

/** The read limit of each source: a member of a stream execution that only limits need. */
interface ReadLimitsAccess {
  static Map<SparkDataStream, ReadLimit> get(StreamExecution execution) {
    return execution.uniqueSources();
  }

  static void set(StreamExecution execution, Map<SparkDataStream, ReadLimit> limits) {
    execution.uniqueSources_$eq(limits);
  }
}
