package org.apache.spark.sql.elastic;

import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import scala.collection.immutable.Map;

/** The sources of a query, by their ids in its offsets. */
interface SourceIdAccess {
  static Map<String, SparkDataStream> get(MicroBatchExecution execution) {
    return execution.sourceIdMap();
  }

  static void set(MicroBatchExecution execution, Map<String, SparkDataStream> ids) {
    execution.sourceIdMap_$eq(ids);
  }
}
