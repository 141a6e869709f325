package org.apache.spark.sql.elastic

import org.apache.spark.sql.execution.FileSourceScanExec

/** A file scan that copies another one. */
private[elastic] abstract class CopiedScan(scan: FileSourceScanExec)
    extends FileSourceScanExec(
      scan.relation,
      scan.stream,
      scan.output,
      scan.requiredSchema,
      scan.partitionFilters,
      scan.optionalBucketSet,
      scan.optionalNumCoalescedBuckets,
      scan.dataFilters,
      scan.tableIdentifier,
      scan.disableBucketedScan)
