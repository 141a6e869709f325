package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase

/** A scan that shows the metrics that its source reports. */
private[elastic] trait PostsMetrics extends DataSourceV2ScanExecBase {
  protected def postMetrics(): Unit = postDriverMetrics(scan.reportDriverMetrics())
}
