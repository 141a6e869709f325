package org.apache.spark.sql.elastic

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow

import Moved.SparkSession

/** State is not moved before 4.2, so there is nothing to dry-run. */
private[elastic] object DryRun {
  def apply(session: SparkSession, checkpoint: String, at: RDD[InternalRow] => RDD[(String, InternalRow)]): Unit = {}
}
